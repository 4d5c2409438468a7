// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// A KMES producer in userspace: the boot phase, a ring for each CPU, emission, resize, statistics,
// and a socket over which consumers attach. Everything above the core that a kernel module would
// do. Knows no consumer.
//
// A forked child has the same rings, writable, and a copy of all that is private: it must neither
// use its Producer nor destroy it, but execute another program or _exit.
//
// Every call that can fail returns 0 or a negative error number, as the core does, but for the
// constructor, serve() and retire(), which throw std::system_error with one line that says what is
// wrong.
//
//   constructor      registry_available          resize             retire
//       |                    |                      |                  |
//       |  boot phase        |  rings, generation 1 |  generation 2    |  -ESHUTDOWN
//       |  attach: -EAGAIN   |  attach              |                  |
#ifndef KMES_USER_PRODUCER_H
#define KMES_USER_PRODUCER_H

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kmes/ring.h"
#include "kmes/user/memory.h"
#include "kmes/user/platform.h"
#include "kmes/user/resume.h"
#include "kmes/user/retired.h"

namespace kmes {

class ListeningAddress;
class SocketServer;

// 5.1.2: compiled in.
inline constexpr uint64_t kBootCapacityBytes = 256 << 10;
inline constexpr unsigned kMaxCpus = 1024;

// What KMES says of itself, in events of origin class 1 on CPU 0. The payload is text:
// "<key> <value that was refused>: <reason>; <value that stays> stays".
inline constexpr std::string_view kConfigRefusedType = "kmes.config.refused";
inline constexpr std::string_view kResizeFailedType = "kmes.resize.failed";

// How an emission makes sure that it and a consumer that falls asleep see each other (E1).
enum class Barrier {
    kFull,  // a full fence in each emission: for every consumer
    // No full fence: each consumer calls membarrier(2) before it sleeps, which executes one in the
    // threads of this process (docs/decisions/0014-asymmetric-barrier.md). Consumers that do not
    // promise that cannot attach. Where the kernel has no such call, it is kFull.
    kAsymmetric,
};

// What a consumer promises when it attaches.
enum class Promise {
    kNone,
    kMembarrier,  // to call kmes_membarrier() as SLEEP_BARRIER, where Attachment::needs_barrier
};

struct ProducerOptions {
    unsigned cpus = 1;                                  // 1..1024; index i is CPU i
    uint64_t boot_capacity_bytes = kBootCapacityBytes;  // a power of two, at least 4096
    // The default size: of rings that are made without a registry, or when it says nonsense.
    uint64_t capacity_bytes = KMES_CONFIG_CAPACITY_DEFAULT_BYTES;
    uint64_t max_event_bytes = KMES_CONFIG_EVENT_DEFAULT_BYTES;
    EmitterMode emitters = EmitterMode::kLocked;
    Clock clock;           // of the events: CLOCK_REALTIME (counter_clock.h)
    Clock schedule_clock;  // of the nudges: CLOCK_MONOTONIC
    NudgeSchedule nudges;
    enum kmes_swap_positions positions = KMES_SWAP_KEEP;  // E11
    uint64_t position_shift_bytes = 0;                    // for KMES_SWAP_SHIFT
    ResumeState resume;                                   // E25; empty: a new session
    // Makes the memory of boot buffers and rings; throws as it does.
    std::function<BufferHandle(const BufferOptions&)> allocate = BufferMemory::create;
    Barrier barrier = Barrier::kFull;
};

// event-model.md: what the issue calls events, bytes, dropped, overwritten, wakes, and more.
struct Statistics {
    uint64_t events = 0;
    uint64_t bytes = 0;
    uint64_t dropped = 0;         // all kinds
    uint64_t dropped_nested = 0;  // of those: from inside an emission (E16)
    uint64_t overwritten = 0;
    uint64_t wakes = 0;
    uint64_t swaps = 0;  // the boot hand-over is one
    uint64_t corrupt = 0;
};

// An event of emit_batch. The memory stays the caller's.
struct BatchEntry : kmes_batch_entry {
    BatchEntry(std::string_view type, std::span<const std::byte> payload)
        : kmes_batch_entry{type.data(), payload.data(), type.size(), payload.size()} {}

    std::string_view type_text() const { return {static_cast<const char*>(type), type_len}; }
};
static_assert(sizeof(BatchEntry) == sizeof(struct kmes_batch_entry), "the core reads arrays of it");

// What an address of the socket serves: attaching and emitting are two privileges.
enum class Serves {
    kAttach,  // attach and identify; emit calls get -EPERM
    kEmit,    // emit calls; attach gets -EPERM
    kAttachAndEmit,
};

// What attach gives. Holding it keeps the buffers, and so their descriptors.
struct Attachment {
    uint64_t capacity_bytes = 0;
    uint64_t session = 0;  // E25
    std::vector<BufferHandle> buffers;
    bool needs_barrier = false;  // the consumers of these buffers keep Promise::kMembarrier
};

// The memory of a caller in another address space: fetch as struct kmes_call has it (kmes/call.h).
struct CallerMemory {
    int (*fetch)(void* context, void* to, const void* from, __u64 bytes) = nullptr;
    void* context = nullptr;
};

class Producer;

// An event that is written in place. While it is open its thread is inside the CPU's critical
// section: fill it and do nothing else. Abandoned where it is not committed.
class Reservation {
  public:
    Reservation() = default;
    ~Reservation() { abandon(); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    // The payload in the ring, which may hold bytes of older events. With ThreadSanitizer use
    // fill() alone.
    std::span<std::byte> payload() const;
    void fill(uint32_t offset, std::span<const std::byte> bytes);
    void commit();
    void abandon();
    bool is_open() const { return cpu_ != nullptr; }

  private:
    friend class Producer;
    struct kmes_cpu* cpu_ = nullptr;
    struct kmes_reservation core_ = {};
};

class Producer {
  public:
    explicit Producer(ProducerOptions options);
    // Retires. No other call may be on its way, and no reservation open.
    ~Producer();
    Producer(const Producer&) = delete;
    Producer& operator=(const Producer&) = delete;

    // -- Emission. From any thread and from signal handlers (EmitterMode says how). -------------
    //
    // All of them: -EINVAL for a CPU that is not there, a type that is empty, longer than 65535
    // bytes or not UTF-8; -ESHUTDOWN after retire; nothing has happened then.

    // The emit call: -ENOSPC over 50 % of the capacity or over MaxEventSize, -EBUSY nested in an
    // emission of the same CPU; no sequence number is used.
    int emit(unsigned cpu, std::string_view type, std::span<const std::byte> payload = {},
             uint8_t origin = KMES_ORIGIN_USERSPACE);
    // The in-kernel form: no MaxEventSize; -ENOSPC over 50 % and -EBUSY nested use a sequence
    // number and are counted (5.1.7 step 5, E16).
    int emit_in_kernel(unsigned cpu, std::string_view type, std::span<const std::byte> payload = {},
                       uint8_t origin = KMES_ORIGIN_KMES);
    // 1..256 entries, else -EINVAL. Stops at the first bad entry and returns its error (as emit);
    // *emitted says how many are before it, which are published. Other emitters of the CPU wait
    // while up to KMES_BATCH_PIECE_BYTES of the batch are written.
    int emit_batch(unsigned cpu, std::span<const BatchEntry> entries, size_t* emitted,
                   uint8_t origin = KMES_ORIGIN_USERSPACE);
    // Goes on after a bad entry; *emitted says how many were written. 0 unless the batch itself is
    // refused.
    int emit_batch_in_kernel(unsigned cpu, std::span<const BatchEntry> entries, size_t* emitted,
                             uint8_t origin = KMES_ORIGIN_KMES);
    // In place, errors as emit_in_kernel. `reservation` is open only after 0. While it is open,
    // emissions to the CPU wait, and so does resize(). Attaches go on, unless it is opened just
    // when that resize() switches to the new buffers: then they wait for it, too.
    int reserve(unsigned cpu, std::string_view type, uint32_t payload_len, Reservation* reservation,
                uint8_t origin = KMES_ORIGIN_KMES);

    // -- The emit calls of callers in other address spaces. Not from a signal handler. ----------
    //
    // As kmes/call.h says, with origin class 0; and -EINVAL for a CPU that is not there, -ESHUTDOWN
    // instead of -EBUSY after retire, -ENOMEM for its staging memory. (A caller in this address
    // space is better off with emit and emit_batch, which copy once, into the ring.)

    int serve_emit(unsigned cpu, const CallerMemory& memory, const void* type, uint16_t type_len,
                   const void* payload, uint32_t payload_len);
    int serve_emit_batch(unsigned cpu, const CallerMemory& memory,
                         const struct kmes_emit_entry* entries, uint32_t count, uint32_t* emitted);

    // -- Configuration. From any thread; not from a signal handler. -----------------------------
    //
    // All that return an int: -EBUSY where this thread is inside an emission (a reservation is
    // open; retire() throws it), -ESHUTDOWN after retire(). A call that refuses has changed
    // nothing, but for the event that a refused value and a failed allocation are said with.

    // 5.1.2: the registry is there and says `capacity_bytes`. Makes the rings and moves the boot
    // events into them. -EINVAL: the value was refused, and the rings have the default size;
    // -EALREADY: there are rings; the error of the allocation: still the boot phase, call again.
    int registry_available(uint64_t capacity_bytes);
    // 5.1.2: there is none. The rings have the default size.
    int start_without_registry();
    // 5.1.8.4, for every CPU; memory for all of them is had before the first one is swapped, and
    // attach goes on meanwhile. Needs the old and the new rings at a time: memory, and four
    // descriptors for each CPU. -EINVAL: not a power of two from 64 KiB to 256 MiB; the error of
    // the allocation, whose event names the limit (memory.h: -EMFILE, -ENFILE, -ENOMEM, -ENOSPC,
    // -EFBIG); -EAGAIN in the boot phase; -ESHUTDOWN. Nothing has changed then, and for the first
    // two an event says so.
    int resize(uint64_t capacity_bytes);
    // MaxEventSize: 1 KiB to 4 MiB, else -EINVAL, and an event says so.
    int set_max_event_bytes(uint64_t max_event_bytes);

    // E19, as steps: nudges every retired buffer once; or what is due by the schedule clock, which
    // also drops what was kept long enough. How many were nudged; none inside an emission of this
    // thread.
    size_t nudge();
    size_t nudge_due();
    size_t retired_buffers() const;

    // E25: stops serving (as stop_serving), publishes what is pending, retires and wakes every
    // buffer, nudges the older ones. Nothing can be emitted, attached to or served afterwards. The
    // state to resume from; again: the same. std::system_error EBUSY inside an emission of this
    // thread: nothing has changed, and it still serves.
    ResumeState retire();

    // -- Attach. --------------------------------------------------------------------------------
    //
    // Waits for the swaps of a resize that is on its way, and the other way round (E14). -EAGAIN in
    // the boot phase, -ESHUTDOWN after retire, -EINVAL for a CPU that is not there, -EBUSY inside
    // an emission of this thread; -EOPNOTSUPP for a consumer that does not promise the barrier that
    // this producer needs.

    int attach(Attachment* attachment, Promise promise = Promise::kNone) const;
    int attach(unsigned cpu, Attachment* attachment, Promise promise = Promise::kNone) const;
    // For somebody who only asks which buffer it is.
    int look(unsigned cpu, Attachment* attachment) const;

    // For consumers of whose end the caller knows (E12): every buffer has a lease until end_lease.
    // When the last lease of a CPU's buffer ends, and nobody has attached to it without one, its
    // need_wake is cleared: a consumer that was killed in its sleep has left it set. From then on a
    // wake that wakes nobody clears it, too: a consumer that has closed its lease goes on without.
    // Not where the emitters take no lock (EmitterMode::kSingle): it stays set there.
    int lease(Attachment* attachment, Promise promise = Promise::kNone) const;
    int lease(unsigned cpu, Attachment* attachment, Promise promise = Promise::kNone) const;
    // `inode` is that of the buffer. One that was swapped out meanwhile has no leases any more.
    // need_wake is cleared by the next clear_due_flags().
    void end_lease(unsigned cpu, uint64_t inode);
    // Clears what is due. True: call it again, since an emitter has a reservation open, which is
    // not waited for. From a thread that has its signals blocked.
    bool clear_due_flags();
    // An emitter of this CPU has a reservation open: an emission there may wait for long.
    bool is_held_long(unsigned cpu) const;

    // -- The socket (socket_server.h). ----------------------------------------------------------

    // Serves at a path, or at an abstract name where `address` begins with '@'. The privileges that
    // `serves` names go to every process that may connect: by the permissions of the path, which
    // are `mode` (0 to 0777) whatever the umask is, or by being the same user for an abstract name.
    // All that may attach are one domain of trust (E25).
    //
    // Each privilege is served at one address: once for both, or twice, with kAttach and with
    // kEmit, for example with a mode for each. At most one producer has an address, and a crashed
    // one leaves it to the next (socket_address.h); beside a path is a lock file, PATH.lock, until
    // the producer stops.
    //
    // std::system_error: EADDRINUSE where another producer or file has the address; EALREADY where
    // the privilege is served already; EBUSY inside an emission of this thread; ESHUTDOWN after
    // retire(); EINVAL, ENAMETOOLONG for an address or a mode that is none; or the error of a
    // system call. Nothing has changed then.
    void serve(const std::string& address, unsigned mode = 0600,
               Serves serves = Serves::kAttachAndEmit);
    // Serves at a Unix socket of type SOCK_SEQPACKET that a service manager listens at and has
    // passed. Its permissions are the manager's. The address stays after this producer, and
    // connections that were not accepted are for the next one. The descriptor is the producer's
    // afterwards, also after an error of a system call. std::system_error: EINVAL where it is no
    // such socket; or as serve().
    void serve_passed(int listening_fd, Serves serves = Serves::kAttachAndEmit);
    // Stops at every address. Returns after the requests that are served now, and after 2 s more
    // where a client stalls what the server closes (socket_server.h). std::system_error: EBUSY
    // inside an emission of this thread; it still serves.
    void stop_serving();

    // Waits for an emission of the CPU that is on its way. Inside an emission of this thread only
    // for the same CPU.
    Statistics statistics(unsigned cpu) const;
    Statistics statistics() const;
    unsigned cpus() const { return static_cast<unsigned>(cpus_.size()); }
    EmitterMode emitters() const { return options_.emitters; }
    // kFull where kAsymmetric was asked for, and could not be had; an event says why.
    Barrier barrier() const { return barrier_; }
    uint64_t session() const { return session_; }

  private:
    struct Cpu;
    struct Input;
    class Call;

    int prepare(Input* input, unsigned cpu, std::string_view type, uint64_t payload_len,
                uint8_t origin) const;
    int refused(const Cpu& cpu, int error) const;
    int check_batch(unsigned cpu, std::span<const BatchEntry> entries) const;

    int make_rings(uint64_t capacity_bytes);
    int allocate_all(uint64_t capacity_bytes, std::vector<BufferHandle>* fresh);
    int swap_all(uint64_t capacity_bytes);
    static void copy_beforehand(Cpu* cpu);
    std::unique_lock<std::mutex> lock_without_reservations();
    int switch_all(uint64_t capacity_bytes, std::vector<BufferHandle>* fresh);
    int phase_error(bool wants_rings) const;
    bool holds_cpu_here() const;
    bool is_inside_here() const;
    void say(std::string_view type, const std::string& text);
    int refuse_capacity(uint64_t capacity_bytes, uint64_t stays);
    void make_cpus();
    void leave_fence_to_consumers();
    void retire_cpu(Cpu& cpu, ResumeState::Cpu* state);
    bool clear_wake(Cpu& cpu);  // false: not now
    uint64_t now_ms() const;
    void nudge_in_background();
    enum class User { kUnknown, kLease, kNone };
    void start_server(Serves serves,
                      const std::function<std::unique_ptr<ListeningAddress>()>& listen);
    int attach_some(size_t first, size_t count, User user, Promise promise,
                    Attachment* attachment) const;

    const ProducerOptions options_;
    const uint64_t session_;
    std::atomic<uint64_t> max_event_bytes_;
    std::vector<std::unique_ptr<Cpu>> cpus_;
    Barrier barrier_ = Barrier::kFull;  // written by the constructor alone

    // Calls that make rings come one after the other. Taken before control_.
    std::mutex resizing_;
    // E14: attach, swaps, nudges and the end exclude each other. Never taken to emit.
    mutable std::mutex control_;
    std::condition_variable schedule_changed_;
    RetiredBuffers retired_;
    uint64_t capacity_bytes_ = 0;  // 0: the boot phase; written under resizing_ and control_
    bool is_retired_ = false;
    ResumeState final_state_;
    std::thread nudge_thread_;

    std::mutex server_mutex_;
    std::vector<std::unique_ptr<SocketServer>> servers_;
    bool serves_no_more_ = false;  // retired, or about to be
};

}  // namespace kmes

#endif
