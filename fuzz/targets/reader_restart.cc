// SPDX-License-Identifier: MIT
//
// See reader_restart.h.
#include "fuzz/targets/reader_restart.h"

#include <cerrno>
#include <map>
#include <memory>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/targets/choices.h"
#include "kmes/reader.h"
#include "kmes/tests/world.h"

namespace kmes::fuzz {
namespace {

constexpr int kOperations = 48;
constexpr int kMaxProducers = 4;
constexpr int kMaxSleeps = 20;  // of one wait
constexpr std::uint64_t kMillisecondNs = 1000000;
constexpr std::uint64_t kTimeouts[] = {0, kMillisecondNs, 50 * kMillisecondNs,
                                       5000 * kMillisecondNs, KMES_NO_TIMEOUT};

class Play {
  public:
    Play(const std::uint8_t* data, std::size_t size) : choices_(data, size) {
        start_producer();
        tests::World& first = *producers_.front();
        first.on_attach = [this](kmes_mapping* mapping) { return answer(mapping); };
        first.on_identify = first.on_attach;
        first.on_sleep = [this](std::uint32_t*, std::uint32_t, std::uint64_t) { return sleep(); };
        config_ = first.reader_config();
        if (choices_.one_in(2)) config_.is_current = is_current;
        if (choices_.one_in(4)) config_.sharing = KMES_SHARED;
        config_.spin_looks = static_cast<__u32>(choices_.below(3));
        playing = this;
        open();
    }
    ~Play() {
        kmes_reader_close(&reader_);
        playing = nullptr;
    }
    Play(const Play&) = delete;
    Play& operator=(const Play&) = delete;

    void run() {
        for (int i = 0; i < kOperations; i++) operate();
    }

  private:
    tests::World& current() { return *producers_.back(); }

    // Gives the CPU to another producer: with a new session, continuing the old numbers, or one
    // that does not tell its session (0).
    void start_producer() {
        tests::WorldSetup setup;
        const bool resumes = !producers_.empty() && choices_.one_in(3);
        const bool names_session = resumes || !choices_.one_in(4);
        std::uint64_t session = names_session ? producers_.size() + 1 : 0;

        if (resumes) {
            setup.last_sequence = current().cpu.sequence;
            session = current().session;
        }
        // Two producers that do not tell are one for a reader. Another one between them ends that.
        if (!names_session && !producers_.empty() && current().session != 0) delivered_.erase(0);
        producers_.push_back(std::make_unique<tests::World>(setup));
        current().session = session;
    }

    int answer(kmes_mapping* mapping) {
        if (error_) return error_;
        current().describe_current(mapping);
        mapping->inode += 1000 * producers_.size();
        return 0;
    }

    static int is_current(void*, __u16, kmes_mapping* mapping) {
        kmes_mapping now{};
        const int error = playing->answer(&now);

        return error ? error : mapping->inode == now.inode && mapping->session == now.session;
    }

    // A replaced producer emits nothing any more, so there is nothing to wait for.
    void expect_no_wait_for_a_replaced_one() {
        kmes_wait wait{};
        if (reader_.is_replaced && !reader_.stopped)
            expect_equal(kmes_reader_wait_begin(&reader_, &wait), 1, "a wait for a replaced one");
    }

    int sleep() {
        if (++sleeps_ == kMaxSleeps) return -EINTR;
        if (choices_.one_in(8)) act();
        switch (choices_.below(4)) {
            case 0:
                return 0;
            case 1:
                return -EINTR;
            default:
                return -ETIMEDOUT;
        }
    }

    // An action of a producer, or its end.
    void act() {
        switch (choices_.below(4)) {
            case 0:
                if (producers_.size() < kMaxProducers) start_producer();
                return;
            case 1:
                error_ = error_ ? 0 : -ECONNREFUSED;
                return;
            default:
                expect_equal(current().emit_sized(60), 0, "the result of an emission");
        }
    }

    void open() {
        const int result = kmes_reader_open(&reader_, &config_);

        expect(result == 0 || result == error_, "the result of kmes_reader_open");
    }

    // Another reader continues at this one's position.
    void reopen() {
        if (choices_.one_in(4))
            config_.place = {};
        else
            config_.place = kmes_reader_get_place(&reader_);
        if (!config_.place.is_known) delivered_.clear();
        kmes_reader_close(&reader_);
        expect_equal(kmes_reader_next(&reader_, room_, sizeof(room_), &view_), -EBADF,
                     "the result of a read after the close");
        open();
    }

    void read() {
        const int found = kmes_reader_next(&reader_, room_, sizeof(room_), &view_);

        if (found != KMES_READ_EVENT) {
            expect(found == KMES_READ_EMPTY || found == error_ || found == -EBADF,
                   "the result of kmes_reader_next");
            return;
        }
        std::uint64_t& last = delivered_[reader_.mapping.session];

        expect(view_.sequence > last, "an event is delivered twice");
        last = view_.sequence;
    }

    void operate() {
        switch (choices_.below(8)) {
            case 0:
            case 1:
                return act();
            case 2:
            case 3:
                sleeps_ = 0;
                kmes_reader_wait(&reader_, kTimeouts[choices_.below(5)]);
                expect_no_wait_for_a_replaced_one();
                return;
            case 4:
                return reopen();
            default:
                return read();
        }
    }

    static inline Play* playing = nullptr;

    Choices choices_;
    std::vector<std::unique_ptr<tests::World>> producers_;  // the last one owns the CPU
    std::map<std::uint64_t, std::uint64_t> delivered_;      // the last number of each session
    kmes_reader_config config_{};
    kmes_reader reader_{};
    kmes_event_view view_{};
    std::uint8_t room_[8192];
    int error_ = 0;
    int sleeps_ = 0;
};

}  // namespace

void play_restarts(const std::uint8_t* data, std::size_t size) {
    Play(data, size).run();
}

}  // namespace kmes::fuzz
