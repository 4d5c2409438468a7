// SPDX-License-Identifier: MIT
//
// One emitter: emits self-describing events through every call of the producer, and records which
// were accepted. Knows no reader.
#ifndef KMES_PROPS_THREADS_EMITTING_H_
#define KMES_PROPS_THREADS_EMITTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kmes/user/producer.h"
#include "props/threads/mix.h"

namespace kmes::props {

class Emitting {
  public:
    // Emitters are counted from 1; emitter 0 ends rounds.
    Emitting(const Mix& mix, unsigned cpu, unsigned emitter, Producer* producer);

    // Emits `count` numbers, one call or batch after the other.
    void emit_some(unsigned count);
    // One small event, which is always accepted.
    void emit_one();

    // Call it when the emitter is idle.
    bool was_accepted(std::uint32_t number) const {
        return number < accepted_.size() && accepted_[number];
    }
    std::uint64_t accepted() const { return accepted_count_; }
    std::uint64_t dropped() const { return dropped_count_; }  // their sequence numbers are used
    const std::string& error() const { return error_; }

  private:
    std::uint32_t take_number();
    EventText describe(std::uint32_t number) const;
    void accept(std::uint32_t number);
    void single(bool in_kernel);
    void batch(bool in_kernel);
    void reserve(bool commits);
    void expect(int expected, int result, const char* call);

    const Mix& mix_;
    const unsigned cpu_;
    const unsigned emitter_;
    Producer* const producer_;
    Draw draw_;
    std::vector<bool> accepted_;
    std::uint64_t accepted_count_ = 0;
    std::uint64_t dropped_count_ = 0;
    std::string error_;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_THREADS_EMITTING_H_
