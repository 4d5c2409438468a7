// SPDX-License-Identifier: MIT
//
// A fixture for tests of classes that observe the testee: rings of two CPUs with served buffers,
// and the events that a tracer would send.
#ifndef KMES_CONFORMANCE_STAGE_STAGE_RINGS_TESTING_H_
#define KMES_CONFORMANCE_STAGE_STAGE_RINGS_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>

#include "conformance/oracle/layout.h"
#include "conformance/stage/rings.h"
#include "conformance/stage/served_buffers.h"
#include "conformance/tracer/events.h"

namespace kmes::conformance {

class ServedRingsTest : public testing::Test {
  protected:
    static constexpr std::uint64_t kCapacityBytes = 65536;
    static constexpr pid_t kThread = 100;
    static constexpr pid_t kOther = 101;

    ServedRingsTest() : rings_(setup()) {
        for (std::uint32_t cpu = 0; cpu < rings_.cpus(); ++cpu) {
            buffers_.serve(buffer(cpu), id(cpu));
            buffers_.note_mapped(buffer(cpu), cpu, kThread);
        }
    }

    static RingsSetup setup() {
        RingsSetup setup;
        setup.cpus = 2;
        setup.capacity_bytes = kCapacityBytes;
        return setup;
    }
    BufferIndex buffer(std::uint32_t cpu) const { return rings_.history().current_buffer(cpu); }
    // Differs from the index, as the ids of a tracer may.
    BufferId id(std::uint32_t cpu) const { return buffer(cpu) + 10; }

    void emit(std::uint32_t cpu) { rings_.emit(cpu, rings_.events().make(100)); }

    FutexWord word(std::uint32_t cpu) const {
        FutexWord word;
        word.place.buffer = id(cpu);
        word.place.offset_bytes = kFutexWordOffset;
        word.value_expected = rings_.counters().of(buffer(cpu));
        return word;
    }
    FutexWait wait(std::uint32_t cpu, TimeLimit limit = TimeLimit::kNone,
                   pid_t thread = kThread) const {
        FutexWait wait;
        wait.tid = thread;
        wait.words = {word(cpu)};
        wait.limit = limit;
        wait.limit_ns = 100'000'000;
        return wait;
    }
    static FutexWaitEnd end(std::int64_t result, pid_t thread = kThread) {
        FutexWaitEnd end;
        end.tid = thread;
        end.result = result;
        return end;
    }

    Rings rings_;
    ServedBuffers buffers_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STAGE_RINGS_TESTING_H_
