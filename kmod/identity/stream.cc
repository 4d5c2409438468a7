// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/identity/stream.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <system_error>

#include "kmes/abi.h"
#include "kmes/user/futex.h"
#include "props/script/script.h"

namespace kmes::identity {
namespace {

constexpr char kType[] = "kmes.stream";
constexpr unsigned kMostCpus = 1024;
constexpr std::uint64_t kLongest = 700;

[[noreturn]] void fail_call(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

std::string payload_of(std::uint64_t seed) {
    const std::uint64_t bytes = (seed * 0x9E3779B97F4A7C15ull >> 33) % kLongest;
    std::string payload(sizeof(seed), '\0');
    std::memcpy(payload.data(), &seed, sizeof(seed));
    return payload + props::payload_bytes(seed, bytes);
}

// Gets the fds of all CPUs. Returns 0 or a negative error number.
int attach_all(std::vector<Descriptor>* fds, std::uint64_t* capacity) {
    const Descriptor device = open_device();
    std::vector<int> numbers(kMostCpus, -1);
    kmes_ioctl_attach attach{};
    attach.fds_address = address_of(numbers.data());
    attach.count = kMostCpus;
    if (ioctl(device.get(), KMES_IOC_ATTACH, &attach)) return -errno;
    for (unsigned i = 0; i < attach.count; i++) fds->emplace_back(numbers[i]);
    *capacity = attach.capacity;
    return 0;
}

int identify(void*, __u16 cpu, kmes_mapping* mapping) {
    std::vector<Descriptor> fds;
    std::uint64_t capacity;
    struct stat status{};
    if (const int error = attach_all(&fds, &capacity)) return error;
    if (fstat(fds.at(cpu).get(), &status)) return -errno;
    mapping->device = status.st_dev;
    mapping->inode = status.st_ino;
    return 0;
}

// A resize before the mmap leaves these buffers unchanged.
int attach(void*, __u16 cpu, kmes_mapping* mapping) {
    std::vector<Descriptor> fds;
    std::uint64_t capacity;
    struct stat status{};
    if (const int error = attach_all(&fds, &capacity)) return error;
    const int fd = fds.at(cpu).get();
    if (fstat(fd, &status)) return -errno;
    const std::uint64_t bytes = KMES_METADATA_BYTES + 2 * capacity;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return -errno;
    *mapping = {};
    mapping->base = base;
    mapping->mapped_bytes = bytes;
    mapping->device = status.st_dev;
    mapping->inode = status.st_ino;
    return 0;
}

void detach(void*, kmes_mapping* mapping) {
    munmap(mapping->base, mapping->mapped_bytes);
}

}  // namespace

unsigned real_cpus() {
    std::vector<Descriptor> fds;
    std::uint64_t capacity;
    if (const int error = attach_all(&fds, &capacity)) {
        errno = -error;
        fail_call("KMES_IOC_ATTACH");
    }
    return static_cast<unsigned>(fds.size());
}

kmes_ioctl_statistics real_statistics(unsigned cpu) {
    const Descriptor device = open_device();
    kmes_ioctl_statistics statistics{};
    statistics.cpu = cpu;
    if (ioctl(device.get(), KMES_IOC_STATISTICS, &statistics)) fail_call("KMES_IOC_STATISTICS");
    return statistics;
}

void stay_on(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set)) fail_call("sched_setaffinity");
}

std::string Emitter::next_payload() {
    return payload_of(number_ << 40 | ++count_);
}

void Emitter::emit() {
    const std::string payload = next_payload();
    kmes_ioctl_emit emit{};
    emit.type_address = address_of(kType);
    emit.type_len = sizeof(kType) - 1;
    emit.payload_address = address_of(payload.data());
    emit.payload_len = static_cast<__u32>(payload.size());
    if (ioctl(device_.get(), KMES_IOC_EMIT, &emit)) fail_call("KMES_IOC_EMIT");
}

void Emitter::emit_batch(unsigned count) {
    std::deque<std::string> payloads;
    std::vector<kmes_emit_entry> entries;
    for (unsigned i = 0; i < count; i++) {
        payloads.push_back(next_payload());
        entries.push_back({kType, sizeof(kType) - 1, payloads.back().data(),
                           static_cast<__u32>(payloads.back().size())});
    }
    kmes_ioctl_emit_batch batch{};
    batch.entries_address = address_of(entries.data());
    batch.count = count;
    if (ioctl(device_.get(), KMES_IOC_EMIT_BATCH, &batch)) fail_call("KMES_IOC_EMIT_BATCH");
    if (batch.emitted != count) throw std::runtime_error("a batch has emitted too few events");
}

Reader::Reader(unsigned cpu) : cpu_(cpu), room_(1 << 16) {
    platform_.sleep = [](void*, __u32* word, __u32 expected, __u64 timeout_ns) {
        return kmes_futex_wait(word, expected, timeout_ns);
    };
    kmes_reader_config config{};
    config.attach_functions = {attach, identify, detach, nullptr};
    config.platform = &platform_;
    config.sharing = KMES_SHARED;  // other readers of the same run
    config.stop_on_corrupt = true;
    config.cpu_id = static_cast<__u16>(cpu);
    if (const int error = kmes_reader_open(&reader_, &config)) {
        errno = -error;
        fail_call("attaching a reader");
    }
    // The reader counts only events that were lost after its attach.
    const kmes_reader_place place = kmes_reader_get_place(&reader_);
    if (place.is_known) first_sequence_ = place.last_sequence + 1;
}

Reader::~Reader() {
    kmes_reader_close(&reader_);
}

void Reader::fail(const std::string& what) {
    if (!failure_) failure_ = "CPU " + std::to_string(cpu_) + ": " + what;
}

// Checks an event. It only counts the numbers of events that no Emitter made.
void Reader::check(const kmes_event_view& view) {
    if (!first_sequence_) first_sequence_ = view.sequence;
    // The reader reports the CPU of the ring. The producer has written the header.
    kmes_event_header header;
    kmes_event_header_load(&header, view.type - KMES_EVENT_FIXED_BYTES);
    if (header.cpu_id != cpu_) return fail("an event of CPU " + std::to_string(header.cpu_id));
    const std::string where = "event " + std::to_string(view.sequence);
    if (std::string_view(reinterpret_cast<const char*>(view.type), view.type_len) != kType) return;
    std::uint64_t seed;
    if (view.payload_len < sizeof(seed)) return fail(where + " has a payload without a seed");
    std::memcpy(&seed, view.payload, sizeof(seed));
    const std::string expected = payload_of(seed);
    if (view.payload_len != expected.size() ||
        std::memcmp(view.payload, expected.data(), expected.size()))
        return fail(where + " does not have the emitted payload");
    std::uint64_t& last = last_count_[seed >> 40];
    const std::uint64_t count = seed & ((1ull << 40) - 1);
    if (count <= last) return fail(where + " follows a later event of the same emitter");
    last = count;
}

bool Reader::drain() {
    kmes_event_view view;
    while (!failure_) {
        const int found = kmes_reader_next(&reader_, room_.data(), room_.size(), &view);
        switches_ = reader_.statistics.switches;
        if (found == KMES_READ_EMPTY) return true;
        if (found == -EMSGSIZE) {
            room_.resize(view.event_size);
            continue;
        }
        if (found < 0) fail("kmes_reader_next returns " + std::to_string(found));
        if (found == KMES_READ_EVENT) check(view);
    }
    return false;
}

void Reader::wait(std::uint64_t timeout_ns) {
    const int result = kmes_reader_wait(&reader_, timeout_ns);
    if (result < 0 && result != -ETIMEDOUT && result != -EINTR)
        fail("kmes_reader_wait returns " + std::to_string(result));
}

bool Reader::is_complete(std::uint64_t last_sequence) {
    if (failure_ || !first_sequence_) return !failure_ && last_sequence == 0;
    const std::uint64_t numbered = last_sequence - *first_sequence_ + 1;
    if (reader_.statistics.delivered + reader_.statistics.lost == numbered) return true;
    fail(std::to_string(numbered) + " events were numbered, " +
         std::to_string(reader_.statistics.delivered) + " delivered and " +
         std::to_string(reader_.statistics.lost) + " lost");
    return false;
}

}  // namespace kmes::identity
