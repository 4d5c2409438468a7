// SPDX-License-Identifier: GPL-2.0-only
//
// Hostile consumers on the real ring of CPU 0, while all CPUs emit. Readers of the other CPUs check
// each event. The attacks must not affect the producer of CPU 0, whose statistics are checked.
#include <sys/ioctl.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>

#include "kmod/hostile/runs.h"
#include "kmod/identity/stream.h"

namespace kmes::hostile {
namespace {

using identity::address_of;
using identity::Descriptor;
using identity::Emitter;
using identity::Reader;

constexpr unsigned kProcesses = 3;
constexpr std::uint64_t kChecksAgainAfter_ns = 20'000'000;

std::pair<Descriptor, std::uint64_t> attach_to_cpu_0() {
    const Descriptor device = identity::open_device();
    kmes_ioctl_attach_cpu attach{};
    if (ioctl(device.get(), KMES_IOC_ATTACH_CPU, &attach))
        throw std::system_error(errno, std::generic_category(), "KMES_IOC_ATTACH_CPU");
    return {Descriptor(attach.fd), attach.capacity};
}

struct Run {
    const Options& options;
    Attackers& attackers;
    Failures failures;
    std::atomic<unsigned> emitting{0};
    std::atomic<bool> is_over{false};
};

// Sleeps sometimes, so that readers do not lose most events.
void emit(Run& run, unsigned cpu, std::uint64_t* emitted) {
    try {
        identity::stay_on(cpu);
        Emitter emitter(cpu + 1);
        while (run.failures.is_empty() && (emitter.emitted() < run.options.events ||
                                           !run.attackers.has_tried_all(run.options.times))) {
            for (int i = 0; i < 20; i++) emitter.emit();
            emitter.emit_batch(10);
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        *emitted = emitter.emitted();
    } catch (const std::exception& error) {
        run.failures.add(error.what());
    }
    run.emitting--;
}

void read(Run& run, unsigned cpu) {
    try {
        Reader reader(cpu);
        bool is_last;
        do {
            is_last = run.is_over;
            if (!reader.drain()) break;
            if (!is_last) reader.wait(kChecksAgainAfter_ns);
        } while (!is_last && !reader.failure());
        reader.is_complete(identity::real_statistics(cpu).last_sequence);
        if (reader.failure()) run.failures.add(*reader.failure());
        std::printf("CPU %u: %llu events delivered, %llu lost\n", cpu,
                    reader.statistics().delivered, reader.statistics().lost);
    } catch (const std::exception& error) {
        run.failures.add(error.what());
    }
}

void compare(unsigned cpu, const kmes_ioctl_statistics& before, std::uint64_t emitted,
             Failures& failures) {
    const kmes_ioctl_statistics after = identity::real_statistics(cpu);
    const std::string name = "CPU " + std::to_string(cpu) + ": ";
    if (after.events - before.events != emitted ||
        after.last_sequence - before.last_sequence != emitted)
        failures.add(name + "the statistics count " + std::to_string(after.events - before.events) +
                     " events; expected " + std::to_string(emitted));
    if (after.corrupt || after.dropped != before.dropped ||
        after.dropped_nested != before.dropped_nested || after.swaps != before.swaps ||
        after.capacity != before.capacity || after.max_event_size != before.max_event_size)
        failures.add(name + "statistics that an emission does not change have changed");
}

}  // namespace

bool play_real(const Options& options) {
    const unsigned cpus = identity::real_cpus();
    std::vector<kmes_ioctl_statistics> before;
    for (unsigned cpu = 0; cpu < cpus; cpu++) before.push_back(identity::real_statistics(cpu));
    Attackers attackers(kProcesses, options.seed, attach_to_cpu_0);
    Run run{options, attackers, {}, {}, {}};
    run.emitting = cpus;
    std::vector<std::uint64_t> emitted(cpus);
    std::vector<std::thread> emitters, readers;
    for (unsigned cpu = 1; cpu < cpus; cpu++) readers.emplace_back([&run, cpu] { read(run, cpu); });
    for (unsigned cpu = 0; cpu < cpus; cpu++)
        emitters.emplace_back([&run, &emitted, cpu] { emit(run, cpu, &emitted[cpu]); });
    kill_and_restart(attackers, run.emitting, run.failures);
    for (std::thread& thread : emitters) thread.join();
    run.is_over = true;
    for (std::thread& thread : readers) thread.join();
    const bool is_good = attackers.stop_and_judge();
    std::uint64_t sum = 0;
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        compare(cpu, before[cpu], emitted[cpu], run.failures);
        sum += emitted[cpu];
    }
    std::printf("real rings of %u CPUs, seed %" PRIu64 ": %" PRIu64 " events\n", cpus, options.seed,
                sum);
    return is_good && run.failures.is_empty();
}

}  // namespace kmes::hostile
