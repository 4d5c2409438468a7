// SPDX-License-Identifier: GPL-2.0-only
//
// Resizes of the real rings under load (stream.h).
#include <sys/ioctl.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "kmod/identity/stream.h"

namespace kmes::identity {
namespace {

constexpr unsigned kEmittersOfEach = 1;  // CPU; the same number of emitters runs on any CPU
constexpr std::uint64_t kWaitLimit_ns = 20'000'000;

struct Run {
    unsigned cpus = 0;
    std::atomic<std::uint64_t> emitted{0};
    std::atomic<bool> is_resized{false};  // the last resize is done: emitters end
    std::atomic<bool> is_over{false};     // all emitters have ended: readers end
    std::atomic<bool> has_failed{false};
    std::vector<std::unique_ptr<Reader>> readers;
    std::mutex lock;
    std::vector<std::string> failures;

    void fail(const std::string& what) {
        const std::lock_guard guard(lock);
        failures.push_back(what);
        has_failed = true;
    }
};

void emit(Run& run, unsigned number, bool stays) {
    try {
        if (stays) stay_on(number % run.cpus);
        Emitter emitter(number);
        while (!run.is_resized) {
            const unsigned step = static_cast<unsigned>(emitter.emitted() % 7);
            step == 6 ? emitter.emit_batch(20) : emitter.emit();
            // Slows down, so that readers do not lose most events.
            if (step == 6) std::this_thread::sleep_for(std::chrono::milliseconds(15));
        }
        run.emitted += emitter.emitted();
    } catch (const std::exception& error) {
        run.fail(error.what());
    }
}

void read(Run& run, unsigned cpu) {
    try {
        Reader& reader = *run.readers[cpu];
        bool is_last;
        do {
            is_last = run.is_over;
            if (!reader.drain()) break;
            if (!is_last) reader.wait(kWaitLimit_ns);
        } while (!is_last && !reader.failure());
        const kmes_ioctl_statistics statistics = real_statistics(cpu);
        reader.is_complete(statistics.last_sequence);
        if (reader.failure()) run.fail(*reader.failure());
        const kmes_reader_statistics& seen = reader.statistics();
        std::printf(
            "CPU %u: %llu delivered, %llu lost, %llu torn, %llu switches, %llu sleeps, %llu "
            "wakes; longest pause of a resize %llu us\n",
            cpu, seen.delivered, seen.lost, seen.torn, seen.switches, seen.sleeps, statistics.wakes,
            statistics.longest_pause_ns / 1000);
    } catch (const std::exception& error) {
        run.fail(error.what());
    }
}

void resize(Run& run, unsigned resizes) {
    const Descriptor device = open_device();
    for (unsigned i = 0; i < resizes && !run.has_failed; i++) {
        kmes_ioctl_configure configure{};
        configure.buffer_capacity = 65536ull << (i * 5 % 4);
        if (ioctl(device.get(), KMES_IOC_CONFIGURE, &configure))
            return run.fail("KMES_IOC_CONFIGURE: " + std::generic_category().message(errno));
        for (const auto& reader : run.readers)
            while (reader->switches() <= i && !run.has_failed)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

struct Counted {
    std::uint64_t events = 0, corrupt = 0, swaps = 0, not_written = 0;
};

Counted count(unsigned cpus) {
    Counted sum;
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        const kmes_ioctl_statistics statistics = real_statistics(cpu);
        sum.events += statistics.events;
        sum.corrupt += statistics.corrupt;
        sum.swaps += statistics.swaps;
        sum.not_written += statistics.dropped + statistics.dropped_nested;
    }
    return sum;
}

}  // namespace

bool resize_real_instance(unsigned resizes) {
    Run run;
    run.cpus = real_cpus();
    const Counted before = count(run.cpus);
    const unsigned emitters = kEmittersOfEach * run.cpus * 2;
    for (unsigned cpu = 0; cpu < run.cpus; cpu++)
        run.readers.push_back(std::make_unique<Reader>(cpu));
    std::vector<std::thread> readers, threads;
    for (unsigned cpu = 0; cpu < run.cpus; cpu++)
        readers.emplace_back([&run, cpu] { read(run, cpu); });
    for (unsigned i = 0; i < emitters; i++)
        threads.emplace_back([&run, i, emitters] { emit(run, i, i < emitters / 2); });
    resize(run, resizes);
    run.is_resized = true;
    for (std::thread& thread : threads) thread.join();
    run.is_over = true;
    for (std::thread& thread : readers) thread.join();
    const Counted after = count(run.cpus);
    if (after.events - before.events != run.emitted)
        run.fail("the statistics count " + std::to_string(after.events - before.events) +
                 " events; expected " + std::to_string(run.emitted));
    if (after.corrupt) run.fail("the producer found impossible sizes");
    if (after.not_written != before.not_written) run.fail("events were dropped");
    for (const std::string& failure : run.failures) std::printf("FAILED %s\n", failure.c_str());
    std::printf("%s real rings, resized %u times (%" PRIu64 " swaps) under load: %" PRIu64
                " events of %u emitters on %u CPUs\n",
                run.failures.empty() ? "passed" : "FAILED", resizes, after.swaps - before.swaps,
                run.emitted.load(), emitters, run.cpus);
    return run.failures.empty();
}

}  // namespace kmes::identity
