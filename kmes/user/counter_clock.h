// SPDX-License-Identifier: GPL-2.0-only OR MIT
// CLOCK_REALTIME from the processor's time-stamp counter. The system's clock takes about as long as
// the rest of an emission. A reading of the counter takes less than half of that.
#ifndef KMES_USER_COUNTER_CLOCK_H
#define KMES_USER_COUNTER_CLOCK_H

#include <atomic>
#include <cstdint>

namespace kmes {

// True if this machine's counter runs at one rate on all processors and in every power state, and
// the kernel itself keeps time with it. The first call determines the result.
bool counter_is_usable();

// The largest difference of the clock from the system's clock.
//
// - Readings of the system's clock are at most kCounterAnchorNs apart. Between two readings, the
//   time is extrapolated at the rate that the last two such intervals agreed on. Its error is the
//   error of the rate over that time. It follows a step of the system's clock after that time.
// - It never goes back by itself. If the extrapolation was ahead, the clock stays constant until
//   the system's clock has caught up. It goes back if the system's clock is behind it by
//   kCounterStepNs or more: then the system's clock has been set.
// - While the rate is unknown (the first intervals), every reading is the system's.
inline constexpr uint64_t kCounterAnchorNs = 1'000'000;
inline constexpr uint64_t kCounterLearnNs = 200'000;  // the shortest interval that gives a rate
inline constexpr uint64_t kCounterStepNs = 10'000;

// One clock, for the emissions of one CPU. Consecutive readings do not go back. Concurrent
// readings, from threads or a signal handler, are correct, too. Their order may differ by the time
// that a reading takes. `Source` has static functions: uint64_t counter() and uint64_t
// realtime_ns().
template <typename Source>
class CounterClockOf {
  public:
    CounterClockOf() = default;
    CounterClockOf(const CounterClockOf&) = delete;
    CounterClockOf& operator=(const CounterClockOf&) = delete;

    // Returns ns since the Unix epoch. A signal handler may call it.
    uint64_t now_ns() {
        const uint32_t version = version_.load(std::memory_order_acquire);
        const uint64_t elapsed = Source::counter() - counter_.load(std::memory_order_relaxed);
        const uint64_t ns = ns_.load(std::memory_order_relaxed) +
                            (elapsed * rate_.load(std::memory_order_relaxed) >> kRateShift);
        const uint64_t window = window_.load(std::memory_order_relaxed);

        // The counter and the anchor are loaded before the version is compared. While the version
        // is odd, they may belong to two anchors, even if the comparison finds equal versions.
        std::atomic_thread_fence(std::memory_order_acquire);
        const bool is_whole = !(version & 1) && version_.load(std::memory_order_relaxed) == version;

        if (elapsed < window && is_whole) [[likely]]
            return not_back(ns);
        return read_system();
    }

  private:
    static constexpr unsigned kRateShift = 32;  // the rate: ns for each tick, in units of 2^-32

    // Returns `ns`, or the last reading if that is later.
    uint64_t not_back(uint64_t ns) {
        const uint64_t last = last_ns_.load(std::memory_order_relaxed);

        if (ns < last) [[unlikely]]
            return last;
        last_ns_.store(ns, std::memory_order_relaxed);
        return ns;
    }

    // Reads the system's clock. The reading becomes the next anchor unless another caller makes
    // one.
    [[gnu::noinline]] uint64_t read_system() {
        uint32_t version = version_.load(std::memory_order_relaxed);

        if ((version & 1) ||
            !version_.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
            return not_back(Source::realtime_ns());
        // A reader that loads an earlier anchor sees the odd version, or none of the stores that
        // follow.
        std::atomic_thread_fence(std::memory_order_release);
        const uint64_t ns = anchor();

        version_.store(version + 2, std::memory_order_release);
        return ns;
    }

    // The caller has made the version odd, so no other caller changes the anchor.
    uint64_t anchor() {
        uint64_t counter = 0, ns = 0;
        const bool is_close = read_both(&counter, &ns);
        const uint64_t earlier = ns_.load(std::memory_order_relaxed);  // 0: no anchor

        if (last_ns_.load(std::memory_order_relaxed) >= ns + kCounterStepNs)
            last_ns_.store(ns, std::memory_order_relaxed);
        if (!is_close || (ns > earlier && ns - earlier < kCounterLearnNs)) return not_back(ns);
        if (earlier) learn(counter - counter_.load(std::memory_order_relaxed), ns - earlier);
        ns_.store(ns, std::memory_order_relaxed);
        counter_.store(counter, std::memory_order_relaxed);
        return not_back(ns);
    }

    // Reads both clocks at one moment: the counter is the middle of two readings around the
    // system's clock. Takes the closest of a few tries; of equal ones the last. False if each was
    // interrupted.
    bool read_both(uint64_t* counter, uint64_t* ns) {
        uint64_t best = UINT64_MAX;

        for (int i = 0; i < kTries && best / 2 > closest_; i++) {
            const uint64_t before = Source::counter();
            const uint64_t now = Source::realtime_ns();
            const uint64_t width = Source::counter() - before;

            if (width > best) continue;
            best = width;
            *counter = before + width / 2;
            *ns = now;
        }
        if (best < closest_ || !closest_) closest_ = best;
        return best / kInterrupted <= closest_;
    }

    // Called from one anchor to the next. A rate is used when two consecutive intervals agree on
    // it. An interval in which the system's clock or the counter was set agrees with none.
    void learn(uint64_t ticks, uint64_t ns) {
        const auto rate = static_cast<uint64_t>((static_cast<unsigned __int128>(ns) << kRateShift) /
                                                (ticks ? ticks : 1));
        const uint64_t off = rate > learnt_ ? rate - learnt_ : learnt_ - rate;
        const bool agrees = off <= learnt_ / kTolerance && rate >> kRateShift < kSlowestNs;

        learnt_ = rate;
        if (!agrees || !rate) return;
        rate_.store(rate, std::memory_order_relaxed);
        window_.store(static_cast<uint64_t>(
                          (static_cast<unsigned __int128>(kCounterAnchorNs) << kRateShift) / rate),
                      std::memory_order_relaxed);
    }

    static constexpr int kTries = 3;
    static constexpr uint64_t kInterrupted = 16;  // times the closest reading: interrupted
    static constexpr uint64_t kTolerance = 1000;  // rates agree to a thousandth
    // A tick of 1 us or more is too slow for events. The limit also bounds elapsed * rate. Over a
    // whole window the factors are below 2^52 and below 2^42, and their product is 10^6 * 2^32.
    static constexpr uint64_t kSlowestNs = 1000;

    // Even: the anchor is complete. Odd: one caller changes it.
    std::atomic<uint32_t> version_{0};
    std::atomic<uint64_t> counter_{0};  // the anchor, in ticks
    std::atomic<uint64_t> ns_{0};       // and by the system's clock; 0: no anchor yet
    std::atomic<uint64_t> rate_{0};
    std::atomic<uint64_t> window_{0};  // ticks of validity of the anchor; 0: the rate is unknown
    std::atomic<uint64_t> last_ns_{0};

    // Owned by the caller that has made the version odd.
    uint64_t learnt_ = 0;
    uint64_t closest_ = 0;  // ticks of the closest reading of both clocks; 0: none
};

// The machine's counter and CLOCK_REALTIME.
struct MachineSource {
    static uint64_t counter() {
#if defined(__x86_64__)
        return __builtin_ia32_rdtsc();
#else
        return 0;
#endif
    }
    static uint64_t realtime_ns();
};

using CounterClock = CounterClockOf<MachineSource>;

}  // namespace kmes

#endif
