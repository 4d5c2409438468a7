// SPDX-License-Identifier: MIT
//
// Measures the cost of one access. Prints median times in nanoseconds: of an emulated access, of a
// redirected one, of one with the guards open, and of a single step. Each is also given as a
// percentage above the bare stop of this machine (stop_floor.h), measured in the same run. The
// testee is that of the tests. No figure makes this program fail.
//
//   stepper_benchmark [folder of the testee]

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "conformance/tracer/stop_floor.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {
namespace {

constexpr uint64_t kCapacityBytes = 65536;
constexpr int kWarmUps = 200;
constexpr auto kLimit = std::chrono::seconds(60);

// The files of one buffer.
class BufferFiles {
  public:
    BufferFiles() {
        metadata_ = memfd_create("metadata", MFD_CLOEXEC);
        data_ = memfd_create("data", MFD_CLOEXEC);
        is_good_ = ftruncate(metadata_, static_cast<off_t>(kPageBytes + 2 * kCapacityBytes)) == 0 &&
                   ftruncate(data_, static_cast<off_t>(kCapacityBytes)) == 0;
    }
    ~BufferFiles() {
        close(metadata_);
        close(data_);
    }
    BufferFiles(const BufferFiles&) = delete;
    BufferFiles& operator=(const BufferFiles&) = delete;
    bool is_good() const { return is_good_; }
    ServedBuffer served() const {
        return {.metadata_fd = metadata_, .data_fd = data_, .capacity_bytes = kCapacityBytes};
    }

  private:
    int metadata_ = -1;
    int data_ = -1;
    bool is_good_ = false;
};

double median_ns(std::vector<double>& samples) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

double since_ns(TimePoint begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// A testee in an endless loop of one kind of access, stopped after its mmap.
class LoopRun {
  public:
    LoopRun(const std::string& testee, const std::string& kind) : tracer_(options()) {
        const BufferId id = tracer_.add_buffer(files_.served());
        tracer_.handlers().attach = [id](const AttachRequest&) {
            return AttachAnswer{0, {id}, kCapacityBytes};
        };
        tracer_.start({testee, "loop", kind});
    }
    bool is_mapped() {
        for (;;) {
            const TracerEvent event = tracer_.wait(Clock::now() + kLimit);
            if (const auto* mapped = std::get_if<Mapped>(&event)) {
                mapping_ = mapped->mapping.id;
                return files_.is_good();
            }
            if (const auto* ended = std::get_if<Ended>(&event)) {
                fmt::print(stderr, "the testee ended: {}\n", ended->text);
                return false;
            }
            if (std::holds_alternative<TimedOut>(event)) return false;
        }
    }

    // The time from one access to the next, with a handler.
    double access_ns(int count, GuardStep::Way way) {
        if (!is_mapped() || !tracer_.guards().add(mapping_, 0, 3)) return -1;
        std::vector<double> samples;
        TimePoint last = Clock::now();
        int seen = 0;
        bool is_as_meant = true;
        tracer_.handlers().guarded_access = [&](const GuardHit& hit) {
            const GuardStep step = tracer_.guards().step(hit.tid);
            is_as_meant = is_as_meant && step.way == way;
            const TimePoint now = Clock::now();
            if (++seen > kWarmUps)
                samples.push_back(std::chrono::duration<double, std::nano>(now - last).count());
            last = now;
            return seen < count + kWarmUps ? GuardAnswer::kStep : GuardAnswer::kEvent;
        };
        while (seen < count + kWarmUps) {
            const TracerEvent event = tracer_.wait(Clock::now() + kLimit);
            if (std::holds_alternative<Ended>(event) || std::holds_alternative<TimedOut>(event))
                return -1;
        }
        return is_as_meant ? median_ns(samples) : -1;
    }

    double step_ns(int count) {
        if (!is_mapped()) return -1;
        (void)tracer_.wait(Clock::now() + std::chrono::milliseconds(20));
        if (!tracer_.freeze_all(Clock::now() + kLimit)) return -1;
        const pid_t tid = tracer_.testee_pid();
        std::vector<double> samples;
        for (int i = 0; i < count + kWarmUps; ++i) {
            const TimePoint begin = Clock::now();
            if (!tracer_.guards().step_over(tid)) return -1;
            if (i >= kWarmUps) samples.push_back(since_ns(begin));
        }
        return median_ns(samples);
    }

  private:
    static TracerOptions options() {
        TracerOptions options;
        options.pin_to_one_processor = true;
        return options;
    }

    BufferFiles files_;
    Tracer tracer_;
    MappingId mapping_ = 0;
};

void print_line(const std::string& what, double ns, double floor_ns) {
    fmt::print("{:20}{:10.0f}{:+8.0f} %\n", what, ns, 100 * (ns / floor_ns - 1));
}

int run(const std::string& folder) {
    const std::string testee = folder + "/testee";
    using Way = GuardStep::Way;
    const double fault_floor = bare_stop_ns(BareStop::fault, 20000);
    const double step_floor = bare_stop_ns(BareStop::step, 20000);
    const double emulated = LoopRun(testee, "mov").access_ns(20000, Way::kEmulated);
    const double redirected = LoopRun(testee, "sse").access_ns(5000, Way::kRedirected);
    const double opened = LoopRun(testee, "twice").access_ns(1000, Way::kProtected);
    const double stepped = LoopRun(testee, "register").step_ns(5000);
    if (std::min({fault_floor, step_floor, emulated, redirected, opened, stepped}) < 0) {
        fmt::print(stderr, "a figure could not be measured: nothing is printed\n");
        return 1;
    }
    fmt::print("stepper, medians in ns (testee and runner on one processor), and over the floor\n");
    print_line("floor: a bare fault", fault_floor, fault_floor);
    print_line("emulated access", emulated, fault_floor);
    print_line("redirected access", redirected, fault_floor);
    print_line("with guards opened", opened, fault_floor);
    print_line("floor: a bare step", step_floor, step_floor);
    print_line("single step", stepped, step_floor);
    return 0;
}

}  // namespace
}  // namespace kmes::conformance

int main(int argc, char** argv) {
    const std::string why = kmes::conformance::why_not_traceable();
    if (!why.empty()) {
        fmt::print(stderr, "{}\n", why);
        return 1;
    }
    return kmes::conformance::run(argc > 1 ? argv[1] : "conformance/tracer/testdata");
}
