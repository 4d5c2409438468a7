// SPDX-License-Identifier: MIT
//
// One reader in a thread of its own, in any form of kmes/reader.h. It trusts nothing: it checks
// each event by its own description, and counts each lost one. Knows the producer only for
// attaching.
#ifndef KMES_PROPS_THREADS_READING_H_
#define KMES_PROPS_THREADS_READING_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kmes/reader.h"
#include "kmes/user/producer.h"
#include "props/threads/mix.h"
#include "props/threads/sleeping.h"

namespace kmes::props {

// The deliveries to a reader between an open and the close.
struct Account {
    std::uint64_t first = 0;  // sequence number of the first event that counts; 0: unknown yet
    std::uint64_t last = 0;
    std::uint64_t delivered = 0;
    std::uint64_t lost = 0;  // by lost_before, between first and last
};

class Reading {
  public:
    Reading(const Mix& mix, const ReaderMix& plan, unsigned index, const Producer& producer);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    // Runs until the event that ends the last round is delivered, or the producer has ended.
    void start();
    // Ends any sleep, and the reader; call it again until it is done.
    void rescue();
    void join();

    // From any thread, at any time.
    bool is_done() const { return is_done_.load(std::memory_order_relaxed); }
    // Whether the event that ends this round was delivered.
    bool has_come_to(unsigned round) const {
        return round_.load(std::memory_order_relaxed) >= round;
    }
    SleepingPlace::Snapshot snapshot() const { return place_.snapshot(); }
    std::string name() const;

    // After join.
    const ReaderMix& plan() const { return plan_; }
    const std::string& error() const { return error_; }
    const std::vector<Account>& accounts() const { return accounts_; }
    const std::vector<EventKey>& delivered() const { return delivered_; }
    const kmes_reader_statistics& statistics() const { return statistics_; }

  private:
    static int attach(void* context, __u16 cpu, kmes_mapping* mapping);
    static int identify(void* context, __u16 cpu, kmes_mapping* mapping);
    static void detach(void* context, kmes_mapping* mapping);
    static int sleep(void* context, __u32* word, __u32 expected, __u64 timeout_ns);
    static int take_one(void* context, const kmes_event_view* view);

    void live();
    bool open();
    void close();
    int read();  // until the ring is empty or finished, or another error
    int read_copies();
    int read_in_place();
    int read_bulks();
    bool grow(int result, std::uint64_t needed_bytes);
    bool take(const kmes_event_view& view);  // false: no more now
    void take_marker(unsigned round);
    void fail(const std::string& text);
    void dawdle();
    bool is_finished() const;

    const Mix& mix_;
    const ReaderMix plan_;
    const unsigned index_;
    const Producer& producer_;
    kmes_platform platform_ = {};
    kmes_reader reader_ = {};
    std::vector<std::uint8_t> room_;
    Draw draw_;
    std::vector<std::uint32_t> last_numbers_;  // of each emitter
    bool restarts_now_ = false;
    unsigned restarted_at_ = 0;

    std::string error_;
    std::vector<Account> accounts_;
    std::vector<EventKey> delivered_;
    kmes_reader_statistics statistics_ = {};

    SleepingPlace place_;
    std::atomic<unsigned> round_{0};
    std::atomic<bool> is_rescued_{false};
    std::atomic<bool> is_done_{false};
    std::thread thread_;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_THREADS_READING_H_
