// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A KMES producer in userspace: the boot phase, a ring for each CPU, emission, resize, statistics,
// and a socket where consumers attach. It does everything above the core that a kernel module would
// do. It keeps no list of consumers.
//
// A forked child has the same rings, writable, and a copy of all private memory. It must neither
// use its Producer nor destroy it; it must execute another program or call _exit.
//
// No call is a cancellation point (pthread_cancel), and no destructor. A cancelled thread returns
// from its call first, even if an option such as `allocate` contains a cancellation point.
//
// Every call that can fail returns 0 or a negative error number, as the core does. The exceptions
// are the constructor, serve() and retire(). They throw std::system_error with a text of one line.
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
#include "kmes/user/emitter_counts.h"
#include "kmes/user/memory.h"
#include "kmes/user/platform.h"
#include "kmes/user/resume.h"
#include "kmes/user/retired.h"

namespace kmes {

class ListeningAddress;
class SocketServer;

// 5.1.2: a compiled-in constant.
inline constexpr uint64_t kBootCapacityBytes = 256 << 10;
inline constexpr unsigned kMaxCpus = 1024;

// Events that KMES emits about itself, with origin class 1 on CPU 0. The payload is text:
//   "<key> <refused value>: <reason>; <value that stays> stays".
inline constexpr std::string_view kConfigRefusedType = "kmes.config.refused";
inline constexpr std::string_view kResizeFailedType = "kmes.resize.failed";

// The method by which an emission and a consumer that falls asleep see each other (E1).
enum class Barrier {
    kFull,  // a full fence in each emission; works for every consumer
    // No full fence: each consumer calls membarrier(2) before it sleeps, which executes one in the
    // threads of this process (docs/decisions/0014-asymmetric-barrier.md). A consumer without that
    // promise cannot attach. If the kernel has no such call, kFull is used. A wake can be up to
    // 100 ms late (kmes_reader_promise_membarrier in libkmes_reader.h).
    kAsymmetric,
};

// The promise of a consumer at its attach.
enum class Promise {
    kNone,
    kMembarrier,  // to call kmes_membarrier() as SLEEP_BARRIER, if Attachment::needs_barrier
};

// Functions of the options. None of them may destroy the Producer.
//   clock           inside an emission: calls of the Producer fail as they do there (-EBUSY)
//   allocate        inside the constructor, or a function that makes rings. It may call every
//                   function, but those that make rings return -EBUSY.
//   schedule_clock  as `allocate`, but not in the constructor; also inside nudge_due, and in the
//                   thread of the background nudges, where retire() throws EBUSY. It may call every
//                   function except nudge_due.
// resize, registry_available and start_without_registry make rings.
struct ProducerOptions {
    unsigned cpus = 1;                                  // 1..1024; index i is CPU i
    uint64_t boot_capacity_bytes = kBootCapacityBytes;  // a power of two, at least 4096
    // The default size of rings: without a registry, or if its value is invalid.
    uint64_t capacity_bytes = KMES_CONFIG_CAPACITY_DEFAULT_BYTES;
    uint64_t max_event_bytes = KMES_CONFIG_EVENT_DEFAULT_BYTES;
    EmitterMode emitters = EmitterMode::kLocked;
    Clock clock;           // of the events; default: CLOCK_REALTIME (counter_clock.h)
    Clock schedule_clock;  // of the nudges; default: CLOCK_MONOTONIC
    NudgeSchedule nudges;
    enum kmes_swap_positions positions = KMES_SWAP_KEEP;  // E11
    uint64_t position_shift_bytes = 0;                    // for KMES_SWAP_SHIFT
    ResumeState resume;                                   // E25; empty: a new session
    // Makes the memory of boot buffers and rings; throws as BufferMemory::create does.
    std::function<BufferHandle(const BufferOptions&)> allocate = BufferMemory::create;
    Barrier barrier = Barrier::kFull;
};

// The counters of event-model.md: events, bytes, dropped, overwritten, wakes, and more.
struct Statistics {
    uint64_t events = 0;
    uint64_t bytes = 0;
    uint64_t dropped = 0;         // all kinds together
    uint64_t dropped_nested = 0;  // part of `dropped`: from inside an emission (E16)
    uint64_t overwritten = 0;
    uint64_t wakes = 0;
    uint64_t swaps = 0;  // includes the boot hand-over
    uint64_t corrupt = 0;
};

// An event of emit_batch. The memory belongs to the caller.
struct BatchEntry : kmes_batch_entry {
    BatchEntry(std::string_view type, std::span<const std::byte> payload)
        : kmes_batch_entry{type.data(), payload.data(), type.size(), payload.size()} {}

    std::string_view type_text() const { return {static_cast<const char*>(type), type_len}; }
};
static_assert(sizeof(BatchEntry) == sizeof(struct kmes_batch_entry), "the core reads arrays of it");

// The privileges that an address of the socket serves: attaching and emitting are two privileges.
enum class Serves {
    kAttach,  // attach and identify; emit calls get -EPERM
    kEmit,    // emit calls; attach gets -EPERM
    kAttachAndEmit,
};

// The result of attach. It keeps a reference to the buffers, and so to their descriptors.
struct Attachment {
    uint64_t capacity_bytes = 0;
    uint64_t session = 0;  // E25
    std::vector<BufferHandle> buffers;
    bool needs_barrier = false;  // the consumers of these buffers must keep Promise::kMembarrier
};

// The memory of a caller in another address space, with the fetch function of struct kmes_call
// (kmes/call.h).
struct CallerMemory {
    int (*fetch)(void* context, void* to, const void* from, __u64 bytes) = nullptr;
    void* context = nullptr;
};

class Producer;

// An event that is written in place. While it is open, its thread is inside the CPU's critical
// section: fill it and do nothing else. The destructor abandons it if it was not committed.
class Reservation {
  public:
    Reservation() = default;
    ~Reservation() { abandon(); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    // The payload in the ring, which may contain bytes of older events. With ThreadSanitizer use
    // only fill().
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
    // Retires. No other call may be in progress, and no reservation open.
    ~Producer();
    Producer(const Producer&) = delete;
    Producer& operator=(const Producer&) = delete;

    // -- Emission. From any thread and from signal handlers (EmitterMode says how). -------------
    //
    // All of them return -EINVAL for a CPU that does not exist. They also return it for a type that
    // is empty, longer than 65535 bytes or not UTF-8. They return -ESHUTDOWN after retire. These
    // errors have no effect.

    // The emit call. -ENOSPC: over 50 % of the capacity or over MaxEventSize. -EBUSY: nested in an
    // emission of the same CPU. Neither uses a sequence number.
    int emit(unsigned cpu, std::string_view type, std::span<const std::byte> payload = {},
             uint8_t origin = KMES_ORIGIN_USERSPACE);
    // The in-kernel form, without MaxEventSize. -ENOSPC (over 50 %) and -EBUSY (nested) use a
    // sequence number and are counted (5.1.7 step 5, E16).
    int emit_in_kernel(unsigned cpu, std::string_view type, std::span<const std::byte> payload = {},
                       uint8_t origin = KMES_ORIGIN_KMES);
    // 1..256 entries, otherwise -EINVAL. Stops at the first bad entry and returns its error (as
    // emit). *emitted is the number of entries before it, which are published. Other emitters of
    // the CPU wait while up to KMES_BATCH_PIECE_BYTES of the batch are written.
    int emit_batch(unsigned cpu, std::span<const BatchEntry> entries, size_t* emitted,
                   uint8_t origin = KMES_ORIGIN_USERSPACE);
    // Continues after a bad entry; *emitted is the number of written entries. Returns 0 unless the
    // batch itself is rejected.
    int emit_batch_in_kernel(unsigned cpu, std::span<const BatchEntry> entries, size_t* emitted,
                             uint8_t origin = KMES_ORIGIN_KMES);
    // Reserves in place, errors as emit_in_kernel. `reservation` is open only after 0. While it is
    // open, emissions to the CPU wait, and so does resize(). An attach does not wait, with one
    // exception. If the reservation opens just when such a resize() switches to the new buffers,
    // the attach waits too.
    int reserve(unsigned cpu, std::string_view type, uint32_t payload_len, Reservation* reservation,
                uint8_t origin = KMES_ORIGIN_KMES);

    // -- The emit calls of callers in other address spaces. Not from a signal handler. ----------
    //
    // As kmes/call.h says, with origin class 0. Also -EINVAL for a CPU that does not exist,
    // -ESHUTDOWN instead of -EBUSY after retire, and -ENOMEM for the staging memory. A caller in
    // this address space should use emit and emit_batch, which copy only once, into the ring.

    int serve_emit(unsigned cpu, const CallerMemory& memory, const void* type, uint16_t type_len,
                   const void* payload, uint32_t payload_len);
    int serve_emit_batch(unsigned cpu, const CallerMemory& memory,
                         const struct kmes_emit_entry* entries, uint32_t count, uint32_t* emitted);

    // -- Configuration. From any thread; not from a signal handler. -----------------------------
    //
    // Functions that return an int return -EBUSY if this thread is inside an emission (a
    // reservation is open), and -ESHUTDOWN after retire(). In the first case retire() throws EBUSY.
    // Functions that make rings also return -EBUSY if they are called inside one of them in this
    // thread, by a function of the options.
    // A call that fails changes nothing. It may emit the event that reports a refused value or a
    // failed allocation.

    // 5.1.2: the registry is available and has the value `capacity_bytes`. Makes the rings and
    // moves the boot events into them. -EINVAL: the value was refused, and the rings have the
    // default size. -EALREADY: the rings exist. The error of the allocation: the boot phase
    // continues, call again.
    int registry_available(uint64_t capacity_bytes);
    // 5.1.2: there is no registry. The rings have the default size.
    int start_without_registry();
    // 5.1.8.4, for every CPU. The memory for all rings is allocated before the first swap, and
    // attaches continue meanwhile. The old and the new rings exist at the same time, with their
    // memory and four descriptors for each CPU. Errors, none of which changes anything:
    //   -EINVAL     not a power of two from 64 KiB to 256 MiB; an event reports it
    //   the error of the allocation (-EMFILE, -ENFILE, -ENOMEM, -ENOSPC, -EFBIG); an event reports
    //               it and names the limit (memory.h)
    //   -EAGAIN     the boot phase
    //   -ESHUTDOWN
    int resize(uint64_t capacity_bytes);
    // MaxEventSize: 1 KiB to 4 MiB, otherwise -EINVAL, which an event reports.
    int set_max_event_bytes(uint64_t max_event_bytes);

    // E19, as steps. nudge() nudges every retired buffer once. nudge_due() nudges those that are
    // due by the schedule clock, and drops those that were kept long enough. Both return the number
    // of nudges, and 0 inside an emission of this thread.
    size_t nudge();
    size_t nudge_due();
    size_t retired_buffers() const;

    // E25: stops serving (as stop_serving), publishes the pending events, retires and wakes every
    // buffer, and nudges the older ones. No emission, attach or serve() is possible afterwards.
    // Returns the state to resume from; a further call returns the same. Throws std::system_error
    // EBUSY inside an emission of this thread, and in the thread of the background nudges. That has
    // no effect: the producer still serves.
    ResumeState retire();

    // -- Attach. --------------------------------------------------------------------------------
    //
    // Waits for the swaps of a resize in progress, which in turn wait for an attach (E14). -EAGAIN
    // in the boot phase, -ESHUTDOWN after retire, -EINVAL for a CPU that does not exist. -EBUSY
    // inside an emission of this thread. -EOPNOTSUPP if this producer needs a barrier that the
    // consumer does not promise.

    int attach(Attachment* attachment, Promise promise = Promise::kNone) const;
    int attach(unsigned cpu, Attachment* attachment, Promise promise = Promise::kNone) const;
    // For a caller that only identifies the buffer.
    int inspect(unsigned cpu, Attachment* attachment) const;
    // The number of the next event of this CPU, which must exist. Does not wait for emitters: they
    // may have assigned it meanwhile.
    uint64_t next_sequence(unsigned cpu) const;

    // For consumers whose end the caller notices (E12): every buffer has a lease until end_lease.
    // When the last lease of a CPU's buffer ends, and every attach to it had a lease, its need_wake
    // is cleared. A consumer that was killed in its sleep has left it set. From then on a wake that
    // reaches no sleeper clears it, too: a consumer that has closed its lease continues without
    // one. If the emitters take no lock (EmitterMode::kSingle), need_wake stays set.
    int lease(Attachment* attachment, Promise promise = Promise::kNone) const;
    int lease(unsigned cpu, Attachment* attachment, Promise promise = Promise::kNone) const;
    // `inode` identifies the buffer. A buffer that was swapped out meanwhile has no leases any
    // more. The next clear_due_flags() clears need_wake.
    void end_lease(unsigned cpu, uint64_t inode);
    // Clears every need_wake that is due. True: call it again, because an emitter has an open
    // reservation, for which this call does not wait. The calling thread must have its signals
    // blocked.
    bool clear_due_flags();
    // True while a consumer is attached to the buffer of this CPU, as far as this object knows. An
    // attach without a lease has no end.
    bool is_attended(unsigned cpu) const;
    // True if an emitter of this CPU has an open reservation: an emission there may wait for long.
    bool is_held_long(unsigned cpu) const;

    // -- The socket (socket_server.h). ----------------------------------------------------------

    // Serves at a path, or at an abstract name if `address` begins with '@'. `serves` grants its
    // privileges to every process that may connect. For a path, its permissions decide: they are
    // `mode` (0 to 0777), whatever the umask is. For an abstract name, the user must be the same.
    // All processes that may attach are one domain of trust (E25).
    //
    // Each privilege is served at one address. Call it once for both, or twice, with kAttach and
    // with kEmit, for example with a mode for each. At most one producer has an address. After a
    // crash the next producer can take it (socket_address.h). A path has a lock file, PATH.lock,
    // until the producer stops.
    //
    // Throws std::system_error, without effect:
    //   EADDRINUSE  another producer or file has the address
    //   EALREADY    the privilege is served already
    //   EBUSY       inside an emission of this thread
    //   ESHUTDOWN   after retire()
    //   EINVAL, ENAMETOOLONG  the address or the mode is invalid
    //   EMFILE, ENFILE  no descriptor is left, or none for the first client
    //   or the error of a system call.
    void serve(const std::string& address, unsigned mode = 0600,
               Serves serves = Serves::kAttachAndEmit);
    // Serves at a Unix socket of type SOCK_SEQPACKET on which a service manager listens, and which
    // it has passed. The manager sets its permissions. The address remains after this producer, and
    // connections that were not accepted are for the next producer. The producer owns the
    // descriptor afterwards, also after an error of a system call. Throws std::system_error: EINVAL
    // if it is no such socket, or as serve().
    void serve_passed(int listening_fd, Serves serves = Serves::kAttachAndEmit);
    // Stops at every address. Returns after the requests in progress. A client that stalls a close
    // delays it by at most 2 s (socket_server.h). Throws std::system_error EBUSY inside an emission
    // of this thread; the producer still serves then.
    void stop_serving();

    // Waits for an emission of the CPU that is in progress. Inside an emission of this thread only
    // for the same CPU.
    Statistics statistics(unsigned cpu) const;
    Statistics statistics() const;
    // The emitters by the sockets, and their counts. It lasts as long as this object.
    EmitterCounts* emitter_counts() { return &emitter_counts_; }
    unsigned cpus() const { return static_cast<unsigned>(cpus_.size()); }
    EmitterMode emitters() const { return options_.emitters; }
    // Returns kFull if kAsymmetric was requested but is not available; an event reports the reason.
    Barrier barrier() const { return barrier_; }
    uint64_t session() const { return session_; }

  private:
    struct Cpu;
    struct Input;
    class Call;
    class Resizing;

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
    bool is_resizing_here() const;
    void say(std::string_view type, const std::string& text);
    int refuse_capacity(uint64_t capacity_bytes, uint64_t stays);
    void make_cpus();
    void leave_fence_to_consumers();
    void retire_cpu(Cpu& cpu, ResumeState::Cpu* state);
    bool clear_wake(Cpu& cpu);  // false: not possible now
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

    // Serialises the calls that make rings. Taken before control_. A function of the options runs
    // under it, and may call the Producer, so the thread that has it is recorded.
    std::mutex resizing_;
    std::atomic<std::thread::id> resizer_{};
    // E14: excludes attach, swaps, nudges and the end from each other. An emission never takes it.
    mutable std::mutex control_;
    std::condition_variable schedule_changed_;
    RetiredBuffers retired_;
    uint64_t capacity_bytes_ = 0;  // 0: the boot phase; written under resizing_ and control_
    bool is_retired_ = false;
    ResumeState final_state_;
    std::thread nudge_thread_;
    std::atomic<std::thread::id> nudger_{};  // that thread, while it runs

    EmitterCounts emitter_counts_;  // destroyed after its users
    std::mutex server_mutex_;
    std::vector<std::unique_ptr<SocketServer>> servers_;
    bool serves_no_more_ = false;  // retired, or about to retire
};

}  // namespace kmes

#endif
