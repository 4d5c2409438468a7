// SPDX-License-Identifier: MIT
//
// The backend with buffers of the kernel module. Each stage has its own instance
// (<linux/kmes_test.h>), whose CPUs are not processors of the machine. Every operation is one
// ioctl, and another ioctl then reads the state of the producer. See ring_backend.h.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kmes_test.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "conformance/model/layout.h"
#include "conformance/stage/ring_backend.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kClockStepNs = 1000;
constexpr std::uint64_t kLargestEventBytes = std::uint64_t{4} << 20;

std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

class DeviceBackend : public RingBackend {
  public:
    explicit DeviceBackend(std::string path);
    ~DeviceBackend() override;

    void create(const BackendSetup& setup, OnWake on_wake) override;

    void set_clock(std::uint64_t ns) override;
    int emit(std::uint32_t cpu, const kmes_event_input& input, EmitStyle style) override;
    void batch_begin(std::uint32_t cpu) override { act(cpu, KMES_TEST_BATCH); }
    int batch_add(std::uint32_t cpu, const kmes_event_input& input) override;
    void batch_end(std::uint32_t cpu) override { act(cpu, KMES_TEST_END); }
    int reserve(std::uint32_t cpu, const kmes_event_input& input) override;
    void commit(std::uint32_t cpu) override;
    int swap(std::uint32_t cpu, std::uint64_t capacity_bytes, kmes_swap_positions positions,
             std::uint64_t shift_bytes) override;
    void outrun(std::uint32_t cpu, std::uint64_t laps, std::uint64_t events) override;
    int nudge(std::uint32_t cpu, BufferIndex buffer) override;
    std::uint64_t wake(BufferIndex buffer) override;
    void write(BufferIndex buffer, std::uint64_t offset,
               std::span<const std::uint8_t> bytes) override;

    std::uint64_t buffers() const override { return buffers_.size(); }
    std::uint8_t* base(BufferIndex buffer) const override { return buffers_.at(buffer).base; }
    ProducerState state(BufferIndex buffer) const override { return buffers_.at(buffer).state; }
    std::uint64_t wakes() const override { return wakes_; }

    ServedBuffer served(BufferIndex buffer) const override;
    std::optional<AttachDevice> attach_device() const override { return AttachDevice{path_, id_}; }

  private:
    struct KernelBuffer {
        int fd = -1;
        std::uint8_t* base = nullptr;
        std::uint64_t capacity_bytes = 0;
        // As of the last operation. In a retired buffer only the counter changes, by nudges.
        ProducerState state;
    };

    static kmes_test_operation operation(kmes_test_verb verb, std::uint32_t cpu);
    static kmes_test_operation event_operation(kmes_test_verb verb, std::uint32_t cpu,
                                               const kmes_event_input& input);
    std::int64_t perform(kmes_test_operation& operation) const;
    int act(kmes_test_operation operation);
    int act(std::uint32_t cpu, kmes_test_verb verb) { return act(operation(verb, cpu)); }
    kmes_test_state ask_state(std::uint32_t cpu) const;
    void read_state(std::uint32_t cpu);
    void settle();
    void adopt(std::uint64_t capacity_bytes);

    std::string path_;
    int fd_ = -1;
    std::uint32_t id_ = 0;
    OnWake on_wake_;
    std::vector<KernelBuffer> buffers_;
    std::vector<std::uint64_t> wakes_queued_;  // by CPU: the wakes that its emissions have queued
    // The next time of the instance's clock, if it is known.
    std::optional<std::uint64_t> next_clock_ns_;
    std::uint64_t wakes_ = 0;
    std::uint64_t threads_woken_ = 0;
};

DeviceBackend::DeviceBackend(std::string path) : path_(std::move(path)) {
    fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0) throw SuiteError(fmt::format("{}: {}", path_, strerror(errno)));
}

DeviceBackend::~DeviceBackend() {
    for (const KernelBuffer& buffer : buffers_) {
        if (buffer.base != nullptr) munmap(buffer.base, kMetadataBytes + 2 * buffer.capacity_bytes);
        close(buffer.fd);
    }
    close(fd_);
}

void DeviceBackend::create(const BackendSetup& setup, OnWake on_wake) {
    on_wake_ = std::move(on_wake);
    if (setup.least_file_bytes != 0)
        throw NotStageable("the module says itself how long the file of a buffer is");
    kmes_test_instance instance{};
    instance.capacity = setup.capacity_bytes;
    instance.start_positions_address = address_of(setup.start_positions.data());
    instance.last_sequence = setup.last_sequence;
    instance.first_generation = setup.first_generation;
    instance.max_event_size = kLargestEventBytes;
    instance.cpus = setup.cpus;
    instance.is_boot = setup.is_boot ? 1 : 0;
    instance.first_futex_counter = setup.first_futex_counter;
    if (ioctl(fd_, KMES_TEST_IOC_CREATE, &instance) != 0) {
        const std::string what =
            fmt::format("{}: no instance of {} CPUs with buffers of {} bytes: {}", path_,
                        setup.cpus, setup.capacity_bytes, strerror(errno));
        if (errno == ENOMEM) throw NotStageable(what);
        throw SuiteError(what);
    }
    id_ = instance.id;
    wakes_queued_.resize(setup.cpus);
    for (std::uint32_t cpu = 0; cpu < setup.cpus; ++cpu) {
        adopt(setup.capacity_bytes);
        read_state(cpu);
    }
}

// Opens and maps the next buffer of the instance.
void DeviceBackend::adopt(std::uint64_t capacity_bytes) {
    KernelBuffer& buffer = buffers_.emplace_back();
    buffer.capacity_bytes = capacity_bytes;
    kmes_test_operation open = operation(KMES_TEST_OPEN, 0);
    open.buffer = static_cast<std::uint32_t>(buffers_.size() - 1);
    buffer.fd = static_cast<int>(perform(open));
    if (buffer.fd < 0)
        throw SuiteError(fmt::format("{}: buffer {} cannot be opened: {}", path_, open.buffer,
                                     strerror(-buffer.fd)));
    void* base = mmap(nullptr, kMetadataBytes + 2 * capacity_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED, buffer.fd, 0);
    if (base == MAP_FAILED)
        throw SuiteError(
            fmt::format("{}: buffer {} cannot be mapped: {}", path_, open.buffer, strerror(errno)));
    buffer.base = static_cast<std::uint8_t*>(base);
}

kmes_test_operation DeviceBackend::operation(kmes_test_verb verb, std::uint32_t cpu) {
    kmes_test_operation operation{};
    operation.verb = verb;
    operation.cpu = cpu;
    return operation;
}

kmes_test_operation DeviceBackend::event_operation(kmes_test_verb verb, std::uint32_t cpu,
                                                   const kmes_event_input& input) {
    kmes_test_operation event = operation(verb, cpu);
    event.type_address = address_of(input.type);
    event.type_len = input.type_len;
    event.payload_address = address_of(input.payload);
    event.payload_len = input.payload_len;
    event.header_extra = input.header_extra_len;
    event.origin_class = input.origin_class;
    return event;
}

// Performs the operation and returns its result. Throws NotStageable if memory is short, and
// SuiteError if the device refuses the operation.
std::int64_t DeviceBackend::perform(kmes_test_operation& operation) const {
    if (ioctl(fd_, KMES_TEST_IOC_OPERATE, &operation) == 0) return operation.result;
    const std::string what = fmt::format("{}: operation {} on CPU {}: {}", path_, operation.verb,
                                         operation.cpu, strerror(errno));
    if (errno == ENOMEM) throw NotStageable(what);
    throw SuiteError(what);
}

kmes_test_state DeviceBackend::ask_state(std::uint32_t cpu) const {
    kmes_test_state state{};
    kmes_test_operation question = operation(KMES_TEST_STATE, cpu);
    question.state_address = address_of(&state);
    perform(question);
    return state;
}

// Performs an operation of a producer, and reads its new state. Returns after the wakes that it
// queued have been issued.
int DeviceBackend::act(kmes_test_operation operation) {
    const auto result = static_cast<int>(perform(operation));
    read_state(operation.cpu);
    return result;
}

void DeviceBackend::read_state(std::uint32_t cpu) {
    const kmes_test_state state = ask_state(cpu);
    KernelBuffer& current = buffers_.at(state.buffer);
    current.state = {state.tail, state.published, state.futex_counter};
    if (state.statistics.wakes == wakes_queued_.at(cpu)) return;
    wakes_queued_[cpu] = state.statistics.wakes;
    settle();
}

// Waits until the module has issued the queued wakes: its own thread does so after the emission
// (E16).
void DeviceBackend::settle() {
    kmes_test_operation wait = operation(KMES_TEST_SETTLE, 0);
    perform(wait);
    const kmes_test_state state = ask_state(0);
    if (state.wakes_issued == wakes_) return;
    wakes_ = state.wakes_issued;
    on_wake_(state.threads_woken - std::exchange(threads_woken_, state.threads_woken));
}

// After a set, the clock of the instance advances with each event, as the stage's clock does.
void DeviceBackend::set_clock(std::uint64_t ns) {
    if (next_clock_ns_ != ns) {
        kmes_test_operation clock = operation(KMES_TEST_CLOCK, 0);
        clock.value = ns;
        clock.offset = kClockStepNs;
        perform(clock);
    }
    next_clock_ns_ = ns + kClockStepNs;
}

int DeviceBackend::emit(std::uint32_t cpu, const kmes_event_input& input, EmitStyle style) {
    kmes_test_operation event = event_operation(KMES_TEST_EMIT, cpu, input);
    event.style = style == EmitStyle::kernel ? 0 : 1;
    const int result = act(event);
    // A refused event may have read the clock or not.
    if (result != 0) next_clock_ns_.reset();
    return result;
}

int DeviceBackend::batch_add(std::uint32_t cpu, const kmes_event_input& input) {
    return act(event_operation(KMES_TEST_ADD, cpu, input));
}

int DeviceBackend::reserve(std::uint32_t cpu, const kmes_event_input& input) {
    const int result = act(event_operation(KMES_TEST_RESERVE, cpu, input));
    if (result != 0 || input.payload_len == 0) return result;
    kmes_test_operation fill = operation(KMES_TEST_FILL, cpu);
    fill.payload_address = address_of(input.payload);
    fill.bytes = input.payload_len;
    perform(fill);
    return 0;
}

void DeviceBackend::commit(std::uint32_t cpu) {
    if (act(cpu, KMES_TEST_COMMIT) != 0) throw SuiteError("the commit was refused");
}

int DeviceBackend::swap(std::uint32_t cpu, std::uint64_t capacity_bytes,
                        kmes_swap_positions positions, std::uint64_t shift_bytes) {
    const BufferIndex old_buffer = ask_state(cpu).buffer;
    kmes_test_operation swap = operation(KMES_TEST_SWAP, cpu);
    swap.capacity = capacity_bytes;
    swap.positions = positions;
    swap.shift = shift_bytes;
    const auto result = static_cast<int>(perform(swap));
    if (result != 0) return result;
    ++buffers_.at(old_buffer).state.futex_counter;  // E3
    adopt(capacity_bytes);
    read_state(cpu);
    settle();
    return 0;
}

void DeviceBackend::outrun(std::uint32_t, std::uint64_t, std::uint64_t) {
    throw NotStageable("the module's producer takes no position that it has not written up to");
}

int DeviceBackend::nudge(std::uint32_t cpu, BufferIndex buffer) {
    kmes_test_operation nudge = operation(KMES_TEST_NUDGE, cpu);
    nudge.buffer = static_cast<std::uint32_t>(buffer);
    const auto result = static_cast<int>(perform(nudge));
    if (result != 0) return result;
    ++buffers_.at(buffer).state.futex_counter;  // E19
    settle();
    return 0;
}

std::uint64_t DeviceBackend::wake(BufferIndex buffer) {
    kmes_test_operation wake = operation(KMES_TEST_WAKE, 0);
    wake.buffer = static_cast<std::uint32_t>(buffer);
    const std::int64_t woken = perform(wake);
    // This wake is not one of the producer's wakes.
    const kmes_test_state state = ask_state(0);
    wakes_ = state.wakes_issued;
    threads_woken_ = state.threads_woken;
    return woken > 0 ? static_cast<std::uint64_t>(woken) : 0;
}

void DeviceBackend::write(BufferIndex buffer, std::uint64_t offset,
                          std::span<const std::uint8_t> bytes) {
    kmes_test_operation write = operation(KMES_TEST_WRITE, 0);
    write.buffer = static_cast<std::uint32_t>(buffer);
    write.offset = offset;
    write.payload_address = address_of(bytes.data());
    write.bytes = bytes.size();
    perform(write);
}

ServedBuffer DeviceBackend::served(BufferIndex index) const {
    ServedBuffer served;
    served.metadata_fd = buffers_.at(index).fd;
    served.is_kernel_buffer = true;
    served.capacity_bytes = buffers_.at(index).capacity_bytes;
    served.metadata_bytes = kMetadataBytes;
    return served;
}

}  // namespace

std::unique_ptr<RingBackend> make_device_backend(const std::string& path) {
    return std::make_unique<DeviceBackend>(path);
}

namespace {

// True if the buffers of the instance have the form of this run (layouts.md, in docs/ or
// /usr/share/doc/kmes-conformance). The module maps a buffer only with its exact length, and writes
// headers of its own form.
bool has_form_of_this_run(int device, std::uint64_t capacity_bytes) {
    constexpr std::string_view kType = "form";
    kmes_test_operation emit{};
    emit.verb = KMES_TEST_EMIT;
    emit.type_address = address_of(kType.data());
    emit.type_len = kType.size();
    kmes_test_operation open{};
    open.verb = KMES_TEST_OPEN;
    if (ioctl(device, KMES_TEST_IOC_OPERATE, &emit) != 0 ||
        ioctl(device, KMES_TEST_IOC_OPERATE, &open) != 0 || open.result < 0)
        return true;  // a later operation reports the error
    const auto buffer = static_cast<int>(open.result);
    const std::uint64_t bytes = kMetadataBytes + 2 * capacity_bytes;
    void* const base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, buffer, 0);
    close(buffer);
    if (base == MAP_FAILED) return false;
    std::uint32_t header_bytes = 0;
    std::memcpy(&header_bytes, static_cast<std::uint8_t*>(base) + kMetadataBytes + 4, 4);
    munmap(base, bytes);
    return header_bytes == layout().header_bytes + kType.size();
}

}  // namespace

std::string why_no_device(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return fmt::format("{}: {}; kmes.ko is the module that makes it", path, strerror(errno));
    kmes_test_instance instance{};
    instance.capacity = 65536;
    instance.max_event_size = kLargestEventBytes;
    instance.cpus = 1;
    const int error = ioctl(fd, KMES_TEST_IOC_CREATE, &instance) == 0 ? 0 : errno;
    kmes_ioctl_statistics statistics{};
    const bool is_of_kmes =
        error == 0 || ioctl(fd, KMES_IOC_STATISTICS, &statistics) == 0 || errno != ENOTTY;
    const bool has_form = error != 0 || has_form_of_this_run(fd, instance.capacity);
    close(fd);
    if (!has_form)
        return fmt::format(
            "{}: its buffers are not of form {}; --layout says which form they are of "
            "(layouts.md, in docs/ or /usr/share/doc/kmes-conformance)",
            path, layout().name);
    if (error == ENOTTY && !is_of_kmes)
        return fmt::format("{}: no device of KMES; kmes.ko makes /dev/kmes", path);
    if (error == ENOTTY) return fmt::format("{}: no test build of the module (KMES_TEST=1)", path);
    if (error == EPERM) return fmt::format("{}: CAP_SYS_ADMIN is needed for its instances", path);
    return error == 0 ? "" : fmt::format("{}: no instance: {}", path, strerror(error));
}

}  // namespace kmes::conformance
