// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test load whole|overwritten EVENTS: kmes_load emits from a thread, a softirq, a hard
// interrupt and NMIs on every CPU, and the reference reader follows each CPU. Every missing event
// must have a counted reason:
//
//   whole        the ring has room for all events: each emitted event is delivered, and each
//                missing sequence number is a refused emission (E16)
//   overwritten  the ring is small: delivered + lost = emitted + refused
//
// In both, the numbers of each context and the sequence only grow, and no event is torn.
#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <thread>

#include "kmes/user/libkmes_reader.h"
#include "support.h"

namespace kmes::guest {
namespace {

constexpr char PARAMETERS[] = "/sys/module/kmes_load/parameters/";
constexpr std::array<const char*, 4> CONTEXTS = {"task", "softirq", "hardirq", "nmi"};

// The format of kmod/load/kmes_load.c.
struct Payload {
    std::uint64_t number;
    std::uint32_t context;
    std::uint32_t cpu;
    std::uint8_t filler[16];
};

struct ContextSeen {
    std::uint64_t delivered = 0;
    std::uint64_t next = 0;  // the next expected number
    std::uint64_t missing = 0;
};

class Follower {
  public:
    explicit Follower(int cpu) : cpu_(cpu) {
        kmes_reader_config config = {};
        kmes_reader_by_libkmes(&config, static_cast<__u16>(cpu));
        config.stop_on_corrupt = true;
        EXPECT_EQUAL(kmes_reader_open(&reader_, &config), 0);
        before_ = kmes_reader_get_place(&reader_).last_sequence;
        thread_ = std::thread([this] { follow(); });
    }

    // Reads the remaining events. Call it after the last emission.
    void finish() {
        is_over_ = true;
        thread_.join();
        EXPECT_EQUAL(drain(), 0);
        kmes_reader_close(&reader_);
    }

    const ContextSeen& seen(std::size_t context) const { return seen_[context]; }
    const kmes_reader_statistics& statistics() const { return reader_.statistics; }
    std::uint64_t others() const { return others_; }
    std::uint64_t last_sequence() const { return sequence_; }
    // The reader counts only events that were lost after its attach.
    std::uint64_t lost() const { return before_ + reader_.statistics.lost; }

  private:
    void follow() {
        while (!is_over_) {
            EXPECT_EQUAL(drain(), 0);
            kmes_reader_wait(&reader_, 10'000'000);
        }
    }

    int drain() {
        std::array<std::uint8_t, 4096> bytes;
        kmes_event_view view;
        int result;
        while ((result = kmes_reader_next(&reader_, bytes.data(), bytes.size(), &view)) ==
               KMES_READ_EVENT)
            check(view);
        return result;
    }

    void check(const kmes_event_view& view) {
        EXPECT(view.sequence > sequence_);
        sequence_ = view.sequence;
        if (view.origin_class == KMES_ORIGIN_KMES) {
            ++others_;
            return;
        }
        Payload payload;
        EXPECT_EQUAL(view.payload_len, sizeof payload);
        std::memcpy(&payload, view.payload, sizeof payload);
        EXPECT(payload.context < CONTEXTS.size());
        EXPECT_EQUAL(payload.cpu, cpu_);
        kmes_event_header header;  // of the producer: the view has the CPU of the ring
        kmes_event_header_load(&header, view.type - KMES_EVENT_FIXED_BYTES);
        EXPECT_EQUAL(header.cpu_id, cpu_);
        const std::string type(reinterpret_cast<const char*>(view.type), view.type_len);
        EXPECT(type == CONTEXTS[payload.context]);
        for (std::uint8_t byte : payload.filler) EXPECT_EQUAL(byte, payload.number & 255);
        ContextSeen& seen = seen_[payload.context];
        EXPECT(payload.number >= seen.next);
        seen.missing += payload.number - seen.next;
        seen.next = payload.number + 1;
        ++seen.delivered;
    }

    const int cpu_;
    kmes_reader reader_ = {};
    std::thread thread_;
    std::atomic<bool> is_over_ = false;
    std::array<ContextSeen, 4> seen_;
    std::uint64_t others_ = 0;
    std::uint64_t sequence_ = 0;
    std::uint64_t before_ = 0;  // the last sequence number before the attach
};

struct Sums {
    std::uint64_t emitted = 0, refused = 0, delivered = 0;
};

// Compares one line of kmes_load's counts with the delivered events.
Sums compare(const Follower& follower, bool is_whole, const std::string& line) {
    std::istringstream words(line);
    int cpu = -1;
    std::string name;
    std::uint64_t emitted = 0, refused = 0, failed = 1;
    words >> cpu >> name >> emitted >> refused >> failed;
    std::size_t context = 0;
    while (context < CONTEXTS.size() && name != CONTEXTS[context]) ++context;
    EXPECT(context < CONTEXTS.size());
    const ContextSeen& seen = follower.seen(context);
    std::printf("cpu %d %s: %" PRIu64 " emitted, %" PRIu64 " refused, %" PRIu64 " delivered\n", cpu,
                name.c_str(), emitted, refused, seen.delivered);
    EXPECT_EQUAL(failed, 0);
    EXPECT(seen.delivered <= emitted);
    if (is_whole) {
        EXPECT_EQUAL(seen.delivered, emitted);
        EXPECT_EQUAL(seen.missing, 0);
    }
    return {emitted, refused, seen.delivered};
}

void judge(const Device& device, int cpu, const Follower& follower, bool is_whole, Sums sums) {
    const kmes_ioctl_statistics statistics = device.statistics(cpu);
    const std::uint64_t lost = follower.lost();
    std::printf("cpu %d: last sequence %" PRIu64 ", lost %" PRIu64 ", nested %llu\n", cpu,
                follower.last_sequence(), lost, statistics.dropped_nested);
    EXPECT_EQUAL(follower.statistics().corrupt, 0);
    EXPECT_EQUAL(statistics.corrupt, 0);
    EXPECT_EQUAL(statistics.dropped, 0);
    EXPECT_EQUAL(statistics.dropped_nested, sums.refused);
    // The reader does not see the last sequence numbers if their emissions were refused.
    const std::uint64_t all = sums.emitted + sums.refused + follower.others();
    EXPECT_EQUAL(statistics.last_sequence, all);
    EXPECT(follower.last_sequence() <= all);
    EXPECT_EQUAL(sums.delivered + follower.others() + lost, follower.last_sequence());
    if (is_whole) EXPECT(lost <= sums.refused);
}

}  // namespace

void test_load(const Arguments& arguments) {
    EXPECT(arguments.size() == 2);
    const bool is_whole = arguments[0] == "whole";
    const Device device;
    std::vector<std::unique_ptr<Follower>> followers;
    for (int cpu = 0; cpu < cpus_online(); ++cpu)
        followers.push_back(std::make_unique<Follower>(cpu));
    EXPECT_EQUAL(run("insmod /kmes/modules/kmes_load.ko events=" + arguments[1]), 0);
    EXPECT(wait_until(60, [] { return read_number(std::string(PARAMETERS) + "running") == 0; }));
    const std::string counts = read_file(std::string(PARAMETERS) + "counts");
    for (auto& follower : followers) follower->finish();
    std::vector<Sums> sums(followers.size());
    std::istringstream lines(counts);
    std::size_t seen_lines = 0;
    for (std::string line; std::getline(lines, line); ++seen_lines) {
        const std::size_t cpu = std::stoul(line);
        EXPECT(cpu < followers.size());
        const Sums more = compare(*followers[cpu], is_whole, line);
        sums[cpu].emitted += more.emitted;
        sums[cpu].refused += more.refused;
        sums[cpu].delivered += more.delivered;
    }
    EXPECT_EQUAL(seen_lines, followers.size() * CONTEXTS.size());
    for (std::size_t cpu = 0; cpu < followers.size(); ++cpu)
        judge(device, int(cpu), *followers[cpu], is_whole, sums[cpu]);
    EXPECT_EQUAL(run("rmmod kmes_load"), 0);
}

}  // namespace kmes::guest
