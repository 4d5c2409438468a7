// SPDX-License-Identifier: MIT
//
// The interface of a backend: the memory of the buffers, and the producer that writes to them. A
// backend is the core in this process (core_backend.cc), or an instance of the kernel module
// (device_backend.cc). It has no history, no clock and no judgement, which belong to Rings. Knows
// no testee.
#ifndef KMES_CONFORMANCE_STAGE_RING_BACKEND_H_
#define KMES_CONFORMANCE_STAGE_RING_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/oracle/history.h"
#include "conformance/oracle/layout.h"
#include "conformance/tracer/types.h"
#include "kmes/ring.h"

namespace kmes::conformance {

// An error that is not the testee's. Ends the case with suite_error.
class SuiteError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// This backend or this machine cannot do what the case needs. Ends the case with unsupported.
class NotStageable : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The number of metadata pages before the data.
inline const std::uint64_t kMetadataPages = kMetadataBytes / kPageBytes;

// The first buffers, one for each CPU.
struct BackendSetup {
    std::uint32_t cpus = 1;
    std::uint64_t capacity_bytes = 0;
    std::vector<std::uint64_t> start_positions;  // one for each CPU
    bool is_boot = false;                        // they are boot buffers
    std::uint64_t last_sequence = 0;
    std::uint64_t first_generation = 1;  // 0 for boot buffers
    std::uint32_t first_futex_counter = 0;
    std::uint64_t least_file_bytes = 0;  // the least file size of each buffer, also of later ones
};

// The producer's private copies of the fields of one buffer. The values in the page may differ.
struct ProducerState {
    std::uint64_t tail = 0;
    std::uint64_t published = 0;
    std::uint32_t futex_counter = 0;
};

// Buffers are numbered in the order of their creation. A function of type int returns the result of
// the core (0, -ENOSPC, ...). Each function returns after the wakes that it caused have been
// issued.
class RingBackend {
  public:
    // Called after each wake that was issued for the producer, with the number of woken threads.
    using OnWake = std::function<void(std::uint64_t threads)>;

    virtual ~RingBackend() = default;

    // Makes the first buffers. To be called once, before all other functions.
    virtual void create(const BackendSetup& setup, OnWake on_wake) = 0;

    // -- The producer --
    // Sets the time of the next event or batch.
    virtual void set_clock(std::uint64_t ns) = 0;
    virtual int emit(std::uint32_t cpu, const kmes_event_input& input, EmitStyle style) = 0;
    virtual void batch_begin(std::uint32_t cpu) = 0;
    virtual int batch_add(std::uint32_t cpu, const kmes_event_input& input) = 0;
    virtual void batch_end(std::uint32_t cpu) = 0;
    virtual int reserve(std::uint32_t cpu, const kmes_event_input& input) = 0;
    virtual void commit(std::uint32_t cpu) = 0;
    // Moves the producer to a new buffer. For a boot buffer this is the hand-over.
    virtual int swap(std::uint32_t cpu, std::uint64_t capacity_bytes, kmes_swap_positions positions,
                     std::uint64_t shift_bytes) = 0;
    // Overwrites the current buffer `laps` times in one step, as by `events` events
    // (History::outrun).
    virtual void outrun(std::uint32_t cpu, std::uint64_t laps, std::uint64_t events) = 0;
    virtual int nudge(std::uint32_t cpu, BufferIndex buffer) = 0;
    // If the argument is false, the next operations of the producer wake no thread. Throws
    // NotStageable if the producer always wakes.
    virtual void set_waking(bool) { throw NotStageable("this producer always wakes"); }
    // Issues a FUTEX_WAKE without an event. Returns how many threads it woke.
    virtual std::uint64_t wake(BufferIndex buffer) = 0;
    // Writes bytes at `offset` of the layout (5.1.5), without the producer. Both halves show them.
    virtual void write(BufferIndex buffer, std::uint64_t offset,
                       std::span<const std::uint8_t> bytes) = 0;

    // -- State --
    virtual std::uint64_t buffers() const = 0;
    // Returns the start of the whole mapping (5.1.5). Only the metadata page is certainly writable.
    virtual std::uint8_t* base(BufferIndex buffer) const = 0;
    virtual ProducerState state(BufferIndex buffer) const = 0;
    virtual std::uint64_t wakes() const = 0;
    // Returns need_wake of the page.
    std::uint8_t need_wake(BufferIndex buffer) const {
        return __atomic_load_n(base(buffer) + kNeedWakeOffset, __ATOMIC_RELAXED);
    }

    // -- For the tracer --
    // The backend owns the descriptors.
    virtual ServedBuffer served(BufferIndex buffer) const = 0;
    // Returns the device that answers kmes_attach of the testee. Nothing: the tracer answers it
    // itself, with the buffers of served().
    virtual std::optional<AttachDevice> attach_device() const { return std::nullopt; }
};

// Makes the core in this process, in the form of the layout of this run.
std::unique_ptr<RingBackend> make_core_backend();

// Makes a backend with its own instance on the device at `path`, which needs a test build of the
// module (<linux/kmes_test.h>). Its functions throw NotStageable if the module cannot do what the
// case needs, and SuiteError if the device fails.
std::unique_ptr<RingBackend> make_device_backend(const std::string& path);

// Returns why this device cannot make an instance, in one line. Empty: it can.
std::string why_no_device(const std::string& path);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RING_BACKEND_H_
