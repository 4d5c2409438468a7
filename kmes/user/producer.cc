// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Producer: construction, the boot hand-over, resize, nudges, attach and the end. Emission is in
// producer_emit.cc.
#include "kmes/user/producer.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "kmes/order.h"
#include "kmes/user/futex.h"
#include "kmes/user/membarrier.h"
#include "kmes/user/producer_cpu.h"
#include "kmes/user/signals_blocked.h"
#include "kmes/user/socket_address.h"
#include "kmes/user/socket_server.h"
#include "kmes/user/uncancelled.h"

namespace kmes {
namespace {

[[noreturn]] void fail_producer(int error, const std::string& what) {
    throw std::system_error(error, std::generic_category(), "KMES producer: " + what);
}

// Without a descriptor for its first client a server would let every client wait.
void require_free_descriptor() {
    const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

    if (fd >= 0)
        close(fd);
    else if (errno == EMFILE || errno == ENFILE)
        fail_producer(errno, "no descriptor is left for a client (RLIMIT_NOFILE or fs.file-max)");
}

// event-model.md, Configuration.
bool capacity_is_configurable(uint64_t bytes) {
    return kmes_capacity_is_valid(bytes) && bytes >= KMES_CONFIG_CAPACITY_MIN_BYTES &&
           bytes <= KMES_CONFIG_CAPACITY_MAX_BYTES;
}

bool event_size_is_configurable(uint64_t bytes) {
    return bytes >= KMES_CONFIG_EVENT_MIN_BYTES && bytes <= KMES_CONFIG_EVENT_MAX_BYTES;
}

std::string range_text(uint64_t least, uint64_t most) {
    return std::to_string(least) + " to " + std::to_string(most) + " bytes";
}

// Numbers of a state that is resumed: a later one never gets to 0, which no event has.
constexpr uint64_t kMostResumed = UINT64_MAX / 2;

ProducerOptions checked(ProducerOptions options) {
    if (options.cpus < 1 || options.cpus > kMaxCpus)
        fail_producer(EINVAL, std::to_string(options.cpus) + " CPUs; 1 to 1024 are possible");
    if (!kmes_double_map_capacity_is_valid(options.boot_capacity_bytes))
        fail_producer(EINVAL, "a boot capacity of " + std::to_string(options.boot_capacity_bytes) +
                                  " bytes; a power of two, at least 4096, is possible");
    if (!capacity_is_configurable(options.capacity_bytes))
        fail_producer(
            EINVAL, "a default capacity of " + std::to_string(options.capacity_bytes) +
                        " bytes; a power of two is possible, " +
                        range_text(KMES_CONFIG_CAPACITY_MIN_BYTES, KMES_CONFIG_CAPACITY_MAX_BYTES));
    if (!event_size_is_configurable(options.max_event_bytes))
        fail_producer(EINVAL,
                      "a MaxEventSize of " + std::to_string(options.max_event_bytes) +
                          " bytes; possible are " +
                          range_text(KMES_CONFIG_EVENT_MIN_BYTES, KMES_CONFIG_EVENT_MAX_BYTES));
    if (options.resume.cpus.size() > options.cpus)
        fail_producer(EINVAL, "a state of " + std::to_string(options.resume.cpus.size()) +
                                  " CPUs cannot be resumed with " + std::to_string(options.cpus) +
                                  "; the sequence numbers of the others would begin again");
    for (const ResumeState::Cpu& cpu : options.resume.cpus) {
        if (std::max(cpu.last_sequence, cpu.generation) > kMostResumed)
            fail_producer(EINVAL, "a state with the number " +
                                      std::to_string(std::max(cpu.last_sequence, cpu.generation)) +
                                      "; at most " + std::to_string(kMostResumed) + " is possible");
    }
    return options;
}

// E25: no two producers have the same session, except those that resume.
uint64_t new_session() {
    const Uncancelled uncancelled;
    uint64_t session = 0;

    while (session == 0) {
        if (getrandom(&session, sizeof(session), 0) != sizeof(session) && errno != EINTR)
            fail_producer(errno, "cannot make a session number");
    }
    return session;
}

}  // namespace

Producer::Producer(ProducerOptions options)
    : options_(checked(std::move(options))),
      session_(options_.resume.session ? options_.resume.session : new_session()),
      max_event_bytes_(options_.max_event_bytes),
      retired_(options_.nudges) {
    const Uncancelled uncancelled;

    make_cpus();
    if (options_.barrier == Barrier::kAsymmetric) leave_fence_to_consumers();
    if (options_.nudges.in_background) {
        SignalsBlocked blocked;  // the program's handlers run on its own threads

        nudge_thread_ = std::thread([this] { nudge_in_background(); });
    }
}

Producer::~Producer() {
    const Uncancelled uncancelled;

    retire();
}

// 5.1.2: the boot buffers. No consumer can attach to them. Their generation is one less than that
// of the first rings: 0 in a new session.
void Producer::make_cpus() {
    for (unsigned i = 0; i < options_.cpus; i++) {
        ResumeState::Cpu before;
        BufferOptions memory;
        auto cpu = std::make_unique<Cpu>(options_.emitters, options_.clock);

        if (i < options_.resume.cpus.size()) before = options_.resume.cpus[i];
        memory.capacity_bytes = options_.boot_capacity_bytes;
        memory.generation = before.generation ? before.generation - 1 : 0;
        memory.cpu_id = static_cast<uint16_t>(i);
        cpu->current = options_.allocate(memory);
        kmes_cpu_init(&cpu->core, static_cast<__u16>(i), cpu->current->buffer(),
                      cpu->platform.platform(), before.last_sequence);
        cpus_.push_back(std::move(cpu));
    }
}

// Runs before any buffer can be attached to, and before the first event, except the one below.
void Producer::leave_fence_to_consumers() {
    const int error = kmes_membarrier_register();

    if (error)
        return say(kConfigRefusedType,
                   "Barrier asymmetric: membarrier: " + std::generic_category().message(-error) +
                       "; full stays");
    barrier_ = Barrier::kAsymmetric;
    for (const auto& cpu : cpus_) cpu->core.has_light_fence = true;
}

uint64_t Producer::now_ms() const {
    const Clock& clock = options_.schedule_clock;

    return (clock.now_ns ? clock.now_ns(clock.context) : kmes_clock_monotonic_ns()) / 1000000;
}

// This thread holds a CPU. Other threads wait for it, perhaps while they hold control_. Each call
// that takes a lock therefore checks this first, before it waits or changes anything.
bool Producer::holds_cpu_here() const {
    return std::any_of(cpus_.begin(), cpus_.end(),
                       [](const auto& cpu) { return cpu->platform.is_held_here(); });
}

// This thread is inside an emission: a swap now would wait for itself. (kSingle: by the caller's
// promise no other thread can be inside.)
bool Producer::is_inside_here() const {
    if (options_.emitters == EmitterMode::kLocked) return holds_cpu_here();
    return std::any_of(cpus_.begin(), cpus_.end(),
                       [](const auto& cpu) { return kmes_local_load(&cpu->core.inside) != 0; });
}

// The lock of the calls that make rings, and its owner.
class Producer::Resizing {
  public:
    explicit Resizing(Producer* producer) : producer_(producer), lock_(producer->resizing_) {
        producer_->resizer_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    ~Resizing() { producer_->resizer_.store({}, std::memory_order_relaxed); }
    Resizing(const Resizing&) = delete;
    Resizing& operator=(const Resizing&) = delete;

  private:
    Producer* const producer_;
    const std::lock_guard<std::mutex> lock_;
};

// A function of the options has called the Producer again. Only this thread stores its own id.
bool Producer::is_resizing_here() const {
    return resizer_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

// event-model.md, Configuration: emits an event of origin class 1.
void Producer::say(std::string_view type, const std::string& text) {
    emit_in_kernel(0, type, std::as_bytes(std::span(text)), KMES_ORIGIN_KMES);
}

int Producer::refuse_capacity(uint64_t capacity_bytes, uint64_t stays) {
    say(kConfigRefusedType,
        "BufferCapacity " + std::to_string(capacity_bytes) + ": not a power of two, " +
            range_text(KMES_CONFIG_CAPACITY_MIN_BYTES, KMES_CONFIG_CAPACITY_MAX_BYTES) + "; " +
            std::to_string(stays) + " stays");
    return -EINVAL;
}

// 5.1.8.4 with event-model.md: all or none. Runs without control_, because it may take long.
int Producer::allocate_all(uint64_t capacity_bytes, std::vector<BufferHandle>* fresh) {
    int error = 0;
    std::string reason;

    try {
        for (const auto& cpu : cpus_) {
            BufferOptions memory;

            memory.capacity_bytes = capacity_bytes;
            memory.cpu_id = cpu->core.cpu_id;
            fresh->push_back(options_.allocate(memory));
        }
        std::lock_guard lock(control_);

        retired_.reserve(cpus_.size());
    } catch (const std::system_error& failure) {
        error = failure.code().value();
        reason = failure.what();
    } catch (const std::bad_alloc&) {
        error = ENOMEM;
        reason = "no memory for the list of buffers";
    }
    if (!error) return 0;
    fresh->clear();
    say(kResizeFailedType, "BufferCapacity " + std::to_string(capacity_bytes) + ": " + reason +
                               "; " + std::to_string(capacity_bytes_) + " stays");
    return -error;
}

// Under resizing_, so that resizes are serialised. An attach waits neither for memory nor for the
// copy.
int Producer::swap_all(uint64_t capacity_bytes) {
    std::vector<BufferHandle> fresh;
    int error = allocate_all(capacity_bytes, &fresh);

    for (size_t i = 0; i < cpus_.size() && !error; i++)
        error = kmes_swap_begin(&cpus_[i]->swap, &cpus_[i]->core, fresh[i]->buffer(),
                                options_.positions, options_.position_shift_bytes);
    // This thread is not inside, and the call waits for others: so the producer has ended.
    if (error == -EBUSY) error = -ESHUTDOWN;
    if (!error) error = switch_all(capacity_bytes, &fresh);
    if (error) return error;
    for (const BufferHandle& old : fresh) old->remove_user();
    return 0;
}

// Copies all surviving events, except those that are emitted meanwhile.
void Producer::copy_beforehand(Cpu* cpu) {
    uint64_t rounds = kmes_swap_rounds(&cpu->swap);

    while (rounds-- > 0 && kmes_swap_copy(&cpu->swap)) cpu->platform.let_emitters_in();
}

// Locks control_ after the copy, at a moment without an open reservation. Otherwise the waiters for
// control_ would wait for the end of the reservation. A reservation that opens at that very moment
// is not seen. If others open one again and again, the call waits for the last of them after all.
std::unique_lock<std::mutex> Producer::lock_without_reservations() {
    constexpr int kPasses = 10;

    for (int pass = 1;; pass++) {
        for (const auto& cpu : cpus_) copy_beforehand(cpu.get());  // waits for the reservation
        std::unique_lock lock(control_);
        const bool is_free = std::none_of(cpus_.begin(), cpus_.end(), [](const auto& cpu) {
            return cpu->platform.is_held_long();
        });

        if (is_free || pass == kPasses) return lock;
    }
}

// Replaces the old buffers by the new ones.
int Producer::switch_all(uint64_t capacity_bytes, std::vector<BufferHandle>* fresh) {
    const uint64_t now = now_ms();  // without control_: the clock may call the Producer
    const std::unique_lock lock = lock_without_reservations();

    if (is_retired_) return -ESHUTDOWN;
    retired_.nudge_all();  // E19: at every later swap
    for (size_t i = 0; i < cpus_.size(); i++) {
        Cpu& cpu = *cpus_[i];

        copy_beforehand(&cpu);
        // It cannot return -EBUSY, as above.
        const int error = kmes_swap_finish(&cpu.swap);

        assert(error == 0);
        static_cast<void>(error);
        cpu.current.swap((*fresh)[i]);
        cpu.leases = 0;
        cpu.has_unknown_users = false;
        cpu.note_users();
        cpu.clear_is_due = false;
        // 5.1.2: boot buffers are discarded. No consumer can be asleep on one.
        if (capacity_bytes_) retired_.add(cpu.core.cpu_id, (*fresh)[i], now);
    }
    capacity_bytes_ = capacity_bytes;
    schedule_changed_.notify_all();
    return 0;
}

int Producer::phase_error(bool wants_rings) const {
    std::lock_guard lock(control_);

    if (is_retired_) return -ESHUTDOWN;
    if (wants_rings) return capacity_bytes_ ? 0 : -EAGAIN;
    return capacity_bytes_ ? -EALREADY : 0;
}

// The hand-over, in the boot phase.
int Producer::make_rings(uint64_t capacity_bytes) {
    const Uncancelled uncancelled;

    if (is_inside_here() || is_resizing_here()) return -EBUSY;
    const Resizing resizing(this);
    int error = phase_error(false);

    return error ? error : swap_all(capacity_bytes);
}

int Producer::registry_available(uint64_t capacity_bytes) {
    bool is_valid = capacity_is_configurable(capacity_bytes);
    int error = make_rings(is_valid ? capacity_bytes : options_.capacity_bytes);

    if (error || is_valid) return error;
    return refuse_capacity(capacity_bytes, options_.capacity_bytes);
}

int Producer::start_without_registry() {
    return make_rings(options_.capacity_bytes);
}

int Producer::resize(uint64_t capacity_bytes) {
    const Uncancelled uncancelled;

    if (is_inside_here() || is_resizing_here()) return -EBUSY;
    const Resizing resizing(this);
    int error = phase_error(true);

    if (error) return error;
    if (!capacity_is_configurable(capacity_bytes))
        return refuse_capacity(capacity_bytes, capacity_bytes_);
    return swap_all(capacity_bytes);
}

int Producer::set_max_event_bytes(uint64_t max_event_bytes) {
    const Uncancelled uncancelled;

    if (is_inside_here()) return -EBUSY;
    {
        std::lock_guard lock(control_);

        if (is_retired_) return -ESHUTDOWN;
        if (event_size_is_configurable(max_event_bytes)) {
            max_event_bytes_.store(max_event_bytes, std::memory_order_relaxed);
            return 0;
        }
    }
    say(kConfigRefusedType,
        "MaxEventSize " + std::to_string(max_event_bytes) + ": not " +
            range_text(KMES_CONFIG_EVENT_MIN_BYTES, KMES_CONFIG_EVENT_MAX_BYTES) + "; " +
            std::to_string(max_event_bytes_.load(std::memory_order_relaxed)) + " stays");
    return -EINVAL;
}

size_t Producer::nudge() {
    const Uncancelled uncancelled;

    if (holds_cpu_here()) return 0;
    std::lock_guard lock(control_);

    return retired_.nudge_all();
}

size_t Producer::nudge_due() {
    const Uncancelled uncancelled;

    if (holds_cpu_here()) return 0;
    const uint64_t now = now_ms();  // without control_, as in switch_all
    std::lock_guard lock(control_);

    return retired_.nudge_due(now);
}

size_t Producer::retired_buffers() const {
    return retired_.size();
}

void Producer::nudge_in_background() {
    nudger_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    std::unique_lock lock(control_);

    while (!is_retired_) {
        if (retired_.next_due_ms() == UINT64_MAX) {
            schedule_changed_.wait(lock);
            continue;
        }
        lock.unlock();
        const uint64_t now = now_ms();  // without control_, as in switch_all

        lock.lock();
        if (is_retired_) break;
        retired_.nudge_due(now);
        const uint64_t due_ms = retired_.next_due_ms();

        if (due_ms == UINT64_MAX) continue;
        // An hour at most, so that no schedule overflows the wait. 1 ms at least, so that a buffer
        // that stays pinned past its time does not cause a busy loop.
        uint64_t wait_ms = due_ms > now ? std::min<uint64_t>(due_ms - now, 3600000) : 1;

        schedule_changed_.wait_for(lock, std::chrono::milliseconds(wait_ms));
    }
    // A later thread may have the same id.
    nudger_.store({}, std::memory_order_relaxed);
}

// E25. No emission is possible between the last event and the end.
void Producer::retire_cpu(Cpu& cpu, ResumeState::Cpu* state) {
    SignalsBlocked blocked;

    cpu.platform.with_others_out([&cpu, state] {
        kmes_cpu_retire(&cpu.core);
        cpu.platform.close();
        state->last_sequence = cpu.core.sequence;
        state->generation = cpu.current->buffer()->generation;
    });
}

ResumeState Producer::retire() {
    const Uncancelled uncancelled;

    if (is_inside_here()) fail_producer(EBUSY, "retire() inside an emission of the same thread");
    // It would wait for its own end.
    if (nudger_.load(std::memory_order_relaxed) == std::this_thread::get_id())
        fail_producer(EBUSY, "retire() in the thread of the background nudges");
    std::vector<ResumeState::Cpu> states(cpus_.size());

    {
        std::lock_guard lock(server_mutex_);

        serves_no_more_ = true;
        servers_.clear();
    }
    std::unique_lock lock(control_);

    if (is_retired_) return final_state_;
    for (size_t i = 0; i < cpus_.size(); i++) retire_cpu(*cpus_[i], &states[i]);
    final_state_.session = session_;
    final_state_.cpus = std::move(states);
    retired_.nudge_all();
    is_retired_ = true;
    schedule_changed_.notify_all();
    lock.unlock();
    if (nudge_thread_.joinable()) nudge_thread_.join();
    return final_state_;
}

int Producer::attach_some(size_t first, size_t count, User user, Promise promise,
                          Attachment* attachment) const {
    const Uncancelled uncancelled;

    if (holds_cpu_here()) return -EBUSY;
    std::lock_guard lock(control_);

    if (is_retired_) return -ESHUTDOWN;
    if (!capacity_bytes_) return -EAGAIN;  // 5.1.2: boot buffers cannot be mapped
    // A consumer without the barrier would miss wakes.
    const bool needs_barrier = barrier_ == Barrier::kAsymmetric;

    if (needs_barrier && user != User::kNone && promise != Promise::kMembarrier) return -EOPNOTSUPP;
    attachment->needs_barrier = needs_barrier;
    attachment->capacity_bytes = capacity_bytes_;
    attachment->session = session_;
    attachment->buffers.clear();
    for (size_t i = first; i < first + count; i++)
        attachment->buffers.push_back(BufferMemory::add_user(cpus_[i]->current));
    for (size_t i = first; i < first + count; i++) {
        if (user == User::kLease) cpus_[i]->leases++;
        if (user == User::kUnknown) cpus_[i]->has_unknown_users = true;
        cpus_[i]->note_users();
    }
    return 0;
}

int Producer::attach(Attachment* attachment, Promise promise) const {
    return attach_some(0, cpus_.size(), User::kUnknown, promise, attachment);
}

int Producer::attach(unsigned cpu, Attachment* attachment, Promise promise) const {
    if (cpu >= cpus_.size()) return -EINVAL;
    return attach_some(cpu, 1, User::kUnknown, promise, attachment);
}

void Producer::serve(const std::string& address, unsigned mode, Serves serves) {
    start_server(serves, [&] { return std::make_unique<ListeningAddress>(address, mode); });
}

void Producer::serve_passed(int listening_fd, Serves serves) {
    start_server(serves, [&] { return std::make_unique<ListeningAddress>(listening_fd); });
}

void Producer::start_server(Serves serves,
                            const std::function<std::unique_ptr<ListeningAddress>()>& listen) {
    const Uncancelled uncancelled;

    if (holds_cpu_here()) fail_producer(EBUSY, "serve() inside an emission of the same thread");
    std::lock_guard lock(server_mutex_);

    if (serves_no_more_) fail_producer(ESHUTDOWN, "serve() after retire()");
    for (const auto& server : servers_) {
        if (serves == Serves::kAttachAndEmit || server->serves() == Serves::kAttachAndEmit ||
            server->serves() == serves)
            fail_producer(EALREADY,
                          "serves already; a second address is possible where one serves attach "
                          "alone, and the other emit");
    }
    auto server = std::make_unique<SocketServer>(this, listen(), serves);

    require_free_descriptor();
    servers_.push_back(std::move(server));
}

void Producer::stop_serving() {
    const Uncancelled uncancelled;

    if (holds_cpu_here())
        fail_producer(EBUSY, "stop_serving() inside an emission of the same thread");
    std::lock_guard lock(server_mutex_);

    servers_.clear();
}

Statistics Producer::statistics(unsigned cpu) const {
    Statistics result;

    if (cpu >= cpus_.size()) return result;
    Cpu& from = *cpus_[cpu];
    bool was_inside = from.platform.is_held_here();
    struct kmes_platform* platform = from.platform.platform();

    // Closed: no emitter writes any more.
    bool entered = !was_inside && kmes_platform_enter(platform);
    struct kmes_statistics core = from.core.statistics;
    uint64_t nested = core.dropped_nested + kmes_local_load(&from.core.nested_missed);

    if (entered) kmes_platform_exit(platform);
    result.events = core.events;
    result.bytes = core.bytes;
    result.dropped = core.dropped + nested;
    result.dropped_nested = nested;
    result.overwritten = core.overwritten;
    result.wakes = core.wakes;
    result.swaps = core.swaps;
    result.corrupt = core.corrupt;
    return result;
}

Statistics Producer::statistics() const {
    Statistics sum;

    for (unsigned i = 0; i < cpus_.size(); i++) {
        Statistics one = statistics(i);

        sum.events += one.events;
        sum.bytes += one.bytes;
        sum.dropped += one.dropped;
        sum.dropped_nested += one.dropped_nested;
        sum.overwritten += one.overwritten;
        sum.wakes += one.wakes;
        sum.swaps += one.swaps;
        sum.corrupt += one.corrupt;
    }
    return sum;
}

}  // namespace kmes
