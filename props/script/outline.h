// SPDX-License-Identifier: MIT
//
// The outline of a script's effect on the ring: sizes and positions, no bytes. With it scripts can
// be drawn at the edges (a size that just fits, or that frees exactly one event). It is only an
// estimate: a started operation counts as done at once.
#ifndef KMES_PROPS_SCRIPT_OUTLINE_H_
#define KMES_PROPS_SCRIPT_OUTLINE_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "props/script/script.h"

namespace kmes::props {

// Bytes of the event of emit, add or reserve (event model).
std::uint64_t event_bytes(const Operation& operation);

class Outline {
  public:
    explicit Outline(const Script& script);

    void follow(const Operation& operation);

    std::uint64_t capacity() const { return capacity_; }
    std::uint64_t half() const { return capacity_ / 2; }  // a larger event is dropped
    std::uint64_t write() const { return write_; }
    std::uint64_t used() const { return used_; }
    std::uint64_t room() const { return capacity_ - used_; }
    std::uint64_t until_wrap() const { return capacity_ - (write_ & (capacity_ - 1)); }
    const std::deque<std::uint64_t>& events() const { return events_; }  // sizes, oldest first
    std::uint64_t buffers() const { return buffers_; }  // so far, with the current one
    bool is_boot() const { return is_boot_; }
    bool is_over() const { return is_over_; }
    bool has_batch() const { return has_batch_; }
    bool has_reservation() const { return reserved_.has_value(); }
    bool has_prepared() const { return prepared_.has_value(); }
    bool is_started() const { return is_started_; }

  private:
    void follow_event(const Operation& operation);
    void make_room(std::uint64_t bytes);
    void append(std::uint64_t bytes);
    void swap(const Operation& to);

    std::uint64_t capacity_;
    std::uint64_t write_;
    std::uint64_t used_ = 0;
    std::deque<std::uint64_t> events_;
    std::uint64_t buffers_ = 1;
    std::optional<std::uint64_t> reserved_;
    std::optional<Operation> prepared_;
    bool is_boot_;
    bool is_over_ = false;
    bool has_batch_ = false;
    bool is_started_ = false;
    std::uint64_t accesses_ = 0;  // since it was started
};

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_OUTLINE_H_
