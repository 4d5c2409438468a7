// SPDX-License-Identifier: MIT
//
// Where the buffers of a stage are, and who writes to them: the core in this process
// (core_backend.cc), or a world of the kernel module (device_backend.cc). Plain operations of a
// producer, without history, clock or judgement, which Rings has; knows no testee.
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
#include "conformance/tracer/types.h"
#include "kmes/ring.h"

namespace kmes::conformance {

// Something went wrong that is no fault of the testee: ends the case with suite_error.
class SuiteError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What a case wants cannot be had from this backend, or on this machine: ends the case with
// unsupported.
class NotStageable : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Pages of the metadata in front of the data.
inline const std::uint64_t kMetadataPages = kMetadataBytes / kPageBytes;

// The first buffers, one a CPU.
struct BackendSetup {
    std::uint32_t cpus = 1;
    std::uint64_t capacity_bytes = 0;
    std::vector<std::uint64_t> start_positions;  // one a CPU
    bool is_boot = false;                        // they are boot buffers
    std::uint64_t last_sequence = 0;
    std::uint64_t first_generation = 1;  // 0 of boot buffers
    std::uint32_t first_futex_counter = 0;
    std::uint64_t least_file_bytes = 0;  // of all buffers, these and later ones
};

// What the producer knows of one of its buffers: its own copies, not the page.
struct ProducerState {
    std::uint64_t tail = 0;
    std::uint64_t published = 0;
    std::uint32_t futex_counter = 0;
};

// Buffers are numbered in the order in which they are made. What returns an int gives what the core
// returned (0, -ENOSPC, ...). When a function returns, the wakes that it caused have been issued.
class RingBackend {
  public:
    // Told of each wake that was issued for the producer, with the threads that it woke.
    using OnWake = std::function<void(std::uint64_t threads)>;

    virtual ~RingBackend() = default;

    // Makes the first buffers. Once, before anything else.
    virtual void create(const BackendSetup& setup, OnWake on_wake) = 0;

    // -- The producer. All events that follow have this time. --
    virtual void set_clock(std::uint64_t ns) = 0;
    virtual int emit(std::uint32_t cpu, const kmes_event_input& input, EmitStyle style) = 0;
    virtual void batch_begin(std::uint32_t cpu) = 0;
    virtual int batch_add(std::uint32_t cpu, const kmes_event_input& input) = 0;
    virtual void batch_end(std::uint32_t cpu) = 0;
    virtual int reserve(std::uint32_t cpu, const kmes_event_input& input) = 0;
    virtual void commit(std::uint32_t cpu) = 0;
    // To a new buffer; from a boot buffer the hand-over.
    virtual int swap(std::uint32_t cpu, std::uint64_t capacity_bytes, kmes_swap_positions positions,
                     std::uint64_t shift_bytes) = 0;
    // The present buffer is overwritten `laps` times at once, by so many events (History::outrun).
    virtual void outrun(std::uint32_t cpu, std::uint64_t laps, std::uint64_t events) = 0;
    virtual int nudge(std::uint32_t cpu, BufferIndex buffer) = 0;
    // A FUTEX_WAKE with nothing behind it. Returns how many threads it woke.
    virtual std::uint64_t wake(BufferIndex buffer) = 0;
    // Bytes at `offset` of the layout (5.1.5), behind the producer's back; both halves show them.
    virtual void write(BufferIndex buffer, std::uint64_t offset,
                       std::span<const std::uint8_t> bytes) = 0;

    // -- Looking --
    virtual std::uint64_t buffers() const = 0;
    // The whole mapping (5.1.5). Only the metadata page is sure to be writable.
    virtual std::uint8_t* base(BufferIndex buffer) const = 0;
    virtual ProducerState state(BufferIndex buffer) const = 0;
    virtual std::uint64_t wakes() const = 0;

    // -- For the tracer --
    // The descriptors stay the backend's.
    virtual ServedBuffer served(BufferIndex buffer) const = 0;
    // Who answers kmes_attach of the testee; nothing: the tracer itself, with the buffers above.
    virtual std::optional<AttachDevice> attach_device() const { return std::nullopt; }
};

// The core, in this process, in the form of the layout of this run.
std::unique_ptr<RingBackend> make_core_backend();

// A world of its own on the device of a test build of the module (<linux/kmes_test.h>).
// NotStageable where the world that is wanted cannot be had; SuiteError where the device fails.
std::unique_ptr<RingBackend> make_device_backend(const std::string& path);

// Whether worlds can be had there. Empty: they can; else one line.
std::string why_no_device(const std::string& path);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RING_BACKEND_H_
