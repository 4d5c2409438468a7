// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/hostile/attackers.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>
#include <thread>

#include "kmod/hostile/runs.h"

namespace kmes::hostile {
namespace {

constexpr int kAttacksOfOneAttach = 60;

}  // namespace

Attackers::Attackers(unsigned processes, std::uint64_t seed, Attach attach)
    : attach_(std::move(attach)), next_seed_(seed) {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    shared_ = new (memory) Shared{};
    for (unsigned i = 0; i < processes; i++) processes_.push_back(start());
}

Attackers::~Attackers() {
    for (const pid_t process : processes_) {
        kill(process, SIGKILL);
        waitpid(process, nullptr, 0);
    }
    munmap(shared_, sizeof(Shared));
}

pid_t Attackers::start() {
    const std::uint64_t seed = next_seed_++;
    const pid_t process = fork();
    if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (process > 0) return process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        run(seed);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "a hostile process: %s\n", error.what());
        shared_->failed++;
        _exit(1);
    }
    _exit(0);
}

void Attackers::run(std::uint64_t seed) {
    while (!shared_->is_over) {
        const auto [fd, capacity] = attach_();
        Attacker attacker(fd.get(), capacity, seed += 1000003);
        for (int i = 0; i < kAttacksOfOneAttach && !shared_->is_over; i++) attacker.attack();
        for (std::size_t kind = 0; kind < Attacker::kKinds; kind++)
            shared_->tried[kind] += attacker.tried()[kind];
        shared_->passed += attacker.stores_that_passed();
        shared_->faulted += attacker.stores_that_faulted();
    }
}

bool Attackers::replace_one() {
    pid_t& process = processes_[killed_++ % processes_.size()];
    int status = 0;
    kill(process, SIGKILL);
    const bool was_running = waitpid(process, &status, 0) == process && WIFSIGNALED(status) &&
                             WTERMSIG(status) == SIGKILL;
    process = start();
    return was_running;
}

bool Attackers::has_tried_all(std::uint64_t times) const {
    for (const std::atomic<std::uint64_t>& tried : shared_->tried)
        if (tried < times) return false;
    return true;
}

bool Attackers::stop_and_judge() {
    bool is_good = shared_->failed == 0;
    shared_->is_over = true;
    for (const pid_t process : processes_) {
        int status = 0;
        if (waitpid(process, &status, 0) != process || status != 0) {
            std::printf("FAILED a hostile process ended with status 0x%x\n", status);
            is_good = false;
        }
    }
    processes_.clear();
    for (std::size_t kind = 0; kind < Attacker::kKinds; kind++)
        std::printf("  %-20s %8" PRIu64 "\n", Attacker::name(kind), shared_->tried[kind].load());
    std::printf("  %" PRIu64 " stores to the data faulted, %" PRIu64 " passed; %" PRIu64
                " processes were killed\n",
                shared_->faulted.load(), shared_->passed.load(), killed_);
    if (shared_->passed) std::printf("FAILED stores to the data passed\n");
    return is_good && !shared_->passed && shared_->faulted && has_tried_all(1);
}

void kill_and_restart(Attackers& attackers, const std::atomic<unsigned>& emitting,
                      Failures& failures) {
    while (emitting) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (!attackers.replace_one()) failures.add("a hostile process ended by itself");
    }
}

}  // namespace kmes::hostile
