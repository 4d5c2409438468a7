// SPDX-License-Identifier: GPL-2.0-only
//
// Hostile consumers on CPU 0 of an instance of a test build. For each CPU a second producer in this
// process, the twin, emits the same events. Both must have the same bytes (for CPU 0: the same
// data), and the same private state and statistics.
#include <sys/mman.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "kmes/abi.h"
#include "kmod/hostile/runs.h"
#include "kmod/identity/userspace.h"
#include "props/script/script.h"

namespace kmes::hostile {
namespace {

using identity::address_of;
using identity::Descriptor;
using identity::InstanceOptions;
using identity::Module;
using identity::Userspace;

constexpr unsigned kProcesses = 3;
constexpr unsigned kCpus = 3;
constexpr std::uint64_t kCapacity = 32768;
constexpr unsigned kCapacities = 3;    // each is twice the previous one
constexpr unsigned kChecksEach = 32;   // events
constexpr unsigned kSwapsEach = 400;   // events
constexpr unsigned kMostBuffers = 24;  // all stay mapped and are compared

// One CPU of the instance and its twin in this process. Belongs to one thread.
class TwinCpu {
  public:
    TwinCpu(unsigned cpu, Module& module, const InstanceOptions& options, Failures& failures)
        : cpu_(cpu),
          module_(module),
          twin_(twin_options(cpu, options)),
          failures_(failures),
          random_(cpu + 77) {}

    void emit() {
        const std::string payload =
            props::payload_bytes(events_, random_.below(random_.chance(5) ? kCapacity : 300));
        kmes_test_operation operation{};
        operation.verb = KMES_TEST_EMIT;
        operation.type_address = address_of("kmes.hostile");
        operation.type_len = 12;
        operation.payload_address = payload.empty() ? 0 : address_of(payload.data());
        operation.payload_len = payload.size();
        play(operation);
        events_++;
        if (events_ % kSwapsEach == 0 && buffers_ < kMostBuffers) swap();
        if (events_ % kChecksEach == 0) check();
    }

    // Changes the last byte of the current buffer's data.
    void plant() {
        const std::span<std::uint8_t> mapping = module_.mapping(cpu_, buffers_ - 1);
        const std::uint8_t other = mapping.back() ^ 1;
        kmes_test_operation operation{};
        operation.verb = KMES_TEST_WRITE;
        operation.cpu = cpu_;
        operation.buffer = static_cast<__u32>(buffers_ - 1);
        operation.offset = mapping.size() - 1;
        operation.payload_address = address_of(&other);
        operation.bytes = 1;
        module_.operate(operation);
    }

    unsigned cpu() const { return cpu_; }

    void check() {
        check_state();
        for (std::size_t buffer = 0; buffer < buffers_; buffer++) check_bytes(buffer);
        checks_++;
    }
    std::uint64_t checks() const { return checks_; }
    std::uint64_t events() const { return events_; }

  private:
    static InstanceOptions twin_options(unsigned cpu, InstanceOptions options) {
        options.cpus = 1;
        options.first_cpu_id += cpu;
        return options;
    }

    bool is_attacked() const { return cpu_ == 0; }

    void play(kmes_test_operation operation) {
        kmes_test_operation twin = operation;
        operation.cpu = cpu_;
        if (module_.operate(operation) != twin_.operate(twin)) fail("results differ");
    }

    void swap() {
        kmes_test_operation operation{};
        operation.verb = KMES_TEST_SWAP;
        operation.capacity = kCapacity << random_.below(kCapacities);
        play(operation);
        module_.take_new_buffer(cpu_);
        twin_.take_new_buffer(0);
        buffers_++;
    }

    // On the attacked CPU the number of wakes may differ, since consumers request wakes.
    void check_state() {
        const kmes_test_state ours = twin_.state(0);
        const kmes_test_state theirs = module_.state(cpu_);
        const kmes_ioctl_statistics& mine = ours.statistics;
        const kmes_ioctl_statistics& other = theirs.statistics;
        if (ours.capacity != theirs.capacity || ours.tail != theirs.tail ||
            ours.published != theirs.published || ours.frontier != theirs.frontier ||
            ours.generation != theirs.generation || ours.sequence != theirs.sequence)
            fail("the producer's private state differs");
        if (mine.events != other.events || mine.bytes != other.bytes ||
            mine.dropped != other.dropped || mine.dropped_nested != other.dropped_nested ||
            mine.overwritten != other.overwritten || mine.corrupt != other.corrupt ||
            mine.swaps != other.swaps || mine.left_behind != other.left_behind)
            fail("statistics differ");
        if (!is_attacked() && (other.wakes || ours.futex_counter != theirs.futex_counter))
            fail("the module has issued a wake that no consumer requested");
    }

    void check_bytes(std::size_t buffer) {
        const std::span<std::uint8_t> ours = twin_.mapping(0, buffer);
        const std::span<std::uint8_t> theirs = module_.mapping(cpu_, buffer);
        const std::size_t first = is_attacked() ? KMES_METADATA_BYTES : 0;
        if (ours.size() != theirs.size()) return fail("the lengths of the mappings differ");
        if (std::memcmp(ours.data() + first, theirs.data() + first, ours.size() - first))
            fail("bytes of buffer " + std::to_string(buffer) + " differ");
    }

    void fail(const std::string& what) {
        failures_.add("CPU " + std::to_string(cpu_) + " of the instance, event " +
                      std::to_string(events_) + ": " + what);
    }

    const unsigned cpu_;
    Module& module_;
    Userspace twin_;
    Failures& failures_;
    props::Random random_;
    std::size_t buffers_ = 1;
    std::uint64_t events_ = 0, checks_ = 0;
};

// Returns the current buffer of CPU 0, and its capacity. A swap may come between two calls, so the
// function tries each capacity until mmap succeeds.
std::pair<Descriptor, std::uint64_t> attach_to_attacked(const Module& module) {
    int error = 0;
    std::vector<Descriptor> fds = module.attach(&error);
    if (error) throw std::system_error(error, std::generic_category(), "attach");
    for (unsigned i = 0; i < kCapacities; i++) {
        const std::uint64_t capacity = kCapacity << i;
        const std::uint64_t bytes = KMES_METADATA_BYTES + 2 * capacity;
        void* const base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fds[0].get(), 0);
        if (base == MAP_FAILED) continue;
        munmap(base, bytes);
        return {std::move(fds[0]), capacity};
    }
    throw std::runtime_error("mmap fails with each capacity");
}

void emit(TwinCpu& twin, const Attackers& attackers, const Options& options, Failures& failures) {
    try {
        while (failures.is_empty() &&
               (twin.events() < options.events || !attackers.has_tried_all(options.times)))
            twin.emit();
        if (static_cast<int>(twin.cpu()) == options.planted_cpu) twin.plant();
        twin.check();
    } catch (const std::exception& error) {
        failures.add(error.what());
    }
}

}  // namespace

bool play_instance(const Options& options) {
    InstanceOptions instance;
    instance.capacity = kCapacity;
    instance.clock_step_ns = 0;
    instance.cpus = kCpus;
    instance.first_cpu_id = 5;
    Failures failures;
    Module module(instance);
    Attackers attackers(kProcesses, options.seed, [&module] { return attach_to_attacked(module); });
    std::vector<std::unique_ptr<TwinCpu>> twins;
    std::vector<std::thread> threads;
    std::atomic<unsigned> emitting{kCpus};
    for (unsigned cpu = 0; cpu < kCpus; cpu++)
        twins.push_back(std::make_unique<TwinCpu>(cpu, module, instance, failures));
    for (const auto& twin : twins)
        threads.emplace_back([&, twin = twin.get()] {
            emit(*twin, attackers, options, failures);
            emitting--;
        });
    kill_and_restart(attackers, emitting, failures);
    for (std::thread& thread : threads) thread.join();
    const bool is_good = attackers.stop_and_judge();
    std::uint64_t events = 0, checks = 0;
    for (const auto& twin : twins) {
        twin->check();
        events += twin->events();
        checks += twin->checks();
    }
    std::printf("an instance of %u CPUs, seed %" PRIu64 ": %" PRIu64 " events, compared %" PRIu64
                " times\n",
                kCpus, options.seed, events, checks);
    return is_good && failures.is_empty();
}

}  // namespace kmes::hostile
