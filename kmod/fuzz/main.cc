// SPDX-License-Identifier: GPL-2.0-only
//
// Fuzzes the boundary of the module: arguments of ioctl and mmap, from several threads, on private
// and shared devices. If kernel and module have KCOV, inputs that reach new code are kept and
// mutated. Otherwise it prints BLIND, and runs without coverage.
//
//   boundary [--seed N] [--inputs N] [--threads N] [--canary N]
//
// With --canary it runs until it finds the canary (KMES_TEST_CANARY), which random inputs do not
// find. It fails after N inputs, or if there is no coverage.
#include <dirent.h>
#include <getopt.h>
#include <sys/ioctl.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "kmod/fuzz/calls.h"
#include "kmod/fuzz/coverage.h"
#include "kmod/identity/stream.h"

namespace kmes::fuzz {
namespace {

constexpr std::int64_t kCanaryFound = 4;  // all steps of the canary

struct Options {
    std::uint64_t seed = 1, inputs = 2000, threads = 2;
    std::uint64_t canary_inputs = 0;  // limit of inputs until the canary is found; 0: no canary
};

// Shared by all threads.
struct Campaign {
    Options options;
    SharedDevices devices;
    Seen seen;
    std::mutex lock;
    std::vector<Input> kept;
    std::atomic<std::uint64_t> played{0}, calls{0}, succeeded{0};
    std::atomic<std::int64_t> canary{0};
    std::atomic<bool> has_coverage{false};
    std::atomic<bool> has_failed{false};
};

// Returns the next input. Most are mutations of one of the last kept inputs.
Input next_input(Campaign& campaign, props::Random& random) {
    const std::lock_guard guard(campaign.lock);
    const std::vector<Input>& kept = campaign.kept;
    if (kept.empty() || random.chance(5)) return random_input(random);
    const std::size_t recent = std::min<std::size_t>(kept.size(), 8);
    const Input& one = random.chance(50) ? kept[kept.size() - 1 - random.below(recent)]
                                         : kept[random.below(kept.size())];
    return mutate(one, kept[random.below(kept.size())], random);
}

bool is_over(const Campaign& campaign) {
    if (campaign.has_failed) return true;
    if (campaign.played < campaign.options.inputs) return false;
    return campaign.canary >= kCanaryFound || campaign.played >= campaign.options.canary_inputs;
}

void say(const Campaign& campaign, std::uint64_t played, std::size_t kept) {
    std::printf("%" PRIu64 " inputs, %zu kept, %zu places, canary %" PRId64 " of %" PRId64 "\n",
                played, kept, campaign.seen.size(), campaign.canary.load(), kCanaryFound);
    std::fflush(stdout);
}

void raise(std::atomic<std::int64_t>& highest, std::int64_t value) {
    std::int64_t before = highest;
    while (before < value && !highest.compare_exchange_weak(before, value)) {
    }
}

void fuzz(Campaign& campaign, std::uint64_t thread) {
    props::Random random(campaign.options.seed + thread * 7919);
    ThreadCoverage coverage;
    if (coverage.is_available()) campaign.has_coverage = true;
    Player player(campaign.devices);
    while (!is_over(campaign)) {
        const Input input = next_input(campaign, random);
        coverage.begin();
        player.play(input);
        raise(campaign.canary, player.canary());
        const std::size_t fresh = coverage.is_available() ? campaign.seen.add(coverage) : 0;
        const std::uint64_t played = ++campaign.played;
        const std::lock_guard guard(campaign.lock);
        if (fresh || (!coverage.is_available() && random.chance(2))) campaign.kept.push_back(input);
        if (played % 1000 == 0) say(campaign, played, campaign.kept.size());
    }
    campaign.calls += player.calls();
    campaign.succeeded += player.succeeded();
}

// Returns the number of descriptors of this process.
std::size_t count_descriptors() {
    std::size_t count = 0;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
    while (readdir(folder.get())) count++;
    return count;
}

// Each shared device has an instance, which all threads operate on and join.
void make_shared_instances(Campaign& campaign) {
    for (identity::Descriptor& device : campaign.devices) {
        device = identity::open_device();
        kmes_test_instance instance{};
        instance.capacity = 8192;
        instance.cpus = 2;
        instance.max_event_size = 65536;
        if (ioctl(device.get(), KMES_TEST_IOC_CREATE, &instance))
            std::printf("not a test build: only the production ioctls are fuzzed\n");
    }
}

// Checks that the module still delivers events.
void check_that_it_works() {
    identity::Emitter emitter(1);
    for (unsigned cpu = 0; cpu < identity::real_cpus(); cpu++) {
        identity::stay_on(cpu);
        identity::Reader reader(cpu);
        const std::uint64_t before = identity::real_statistics(cpu).events;
        for (int i = 0; i < 10; i++) emitter.emit();
        const std::uint64_t counted = identity::real_statistics(cpu).events - before;
        if (counted != 10)
            throw std::runtime_error(std::to_string(counted) + " of 10 events were counted");
        if (!reader.drain()) throw std::runtime_error(*reader.failure());
        if (reader.statistics().delivered < 10) throw std::runtime_error("events are missing");
    }
}

int run(const Options& options) {
    Campaign campaign;
    campaign.options = options;
    make_shared_instances(campaign);
    const std::size_t descriptors = count_descriptors();
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < options.threads; i++)
        threads.emplace_back([&campaign, i] {
            try {
                fuzz(campaign, i);
            } catch (const std::exception& error) {
                std::printf("FAILED %s\n", error.what());
                campaign.has_failed = true;
            }
        });
    for (std::thread& thread : threads) thread.join();
    say(campaign, campaign.played, campaign.kept.size());
    std::printf("%s, seed %" PRIu64 ": %" PRIu64 " calls, %" PRIu64 " of them succeeded\n",
                campaign.has_coverage ? "with coverage" : "BLIND: the kernel has no KCOV",
                options.seed, campaign.calls.load(), campaign.succeeded.load());
    if (count_descriptors() != descriptors) {
        std::printf("FAILED the number of open descriptors has changed\n");
        campaign.has_failed = true;
    }
    check_that_it_works();
    if (options.canary_inputs && (!campaign.has_coverage || campaign.canary < kCanaryFound)) {
        std::printf("FAILED the canary was not found\n");
        campaign.has_failed = true;
    }
    return campaign.has_failed ? 1 : 0;
}

bool parse(int count, char** words, Options* options) {
    static const option kOptions[] = {{"seed", 1, nullptr, 's'},
                                      {"inputs", 1, nullptr, 'i'},
                                      {"canary", 1, nullptr, 'c'},
                                      {"threads", 1, nullptr, 't'},
                                      {nullptr, 0, nullptr, 0}};
    for (int word; (word = getopt_long(count, words, "", kOptions, nullptr)) != -1;) {
        const std::uint64_t number = optarg ? std::strtoull(optarg, nullptr, 0) : 0;
        switch (word) {
            case 's':
                options->seed = number;
                break;
            case 'i':
                options->inputs = number;
                break;
            case 'c':
                options->canary_inputs = number;
                break;
            case 't':
                options->threads = number;
                break;
            default:
                return false;
        }
    }
    return optind == count && options->threads >= 1 && options->threads <= 64;
}

}  // namespace
}  // namespace kmes::fuzz

int main(int count, char** words) {
    kmes::fuzz::Options options;
    if (!kmes::fuzz::parse(count, words, &options)) {
        std::fputs("usage: boundary [--seed N] [--inputs N] [--threads N] [--canary N]\n", stderr);
        return 2;
    }
    try {
        return kmes::fuzz::run(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "boundary: %s\n", error.what());
        return 1;
    }
}
