// SPDX-License-Identifier: MIT
//
// See tables_producer.h. An order is one byte over a pipe, and so is its answer.
#include "fuzz/targets/tables_producer.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "fuzz/fail.h"
#include "fuzz/free_address.h"
#include "kmes/user/producer.h"
#include "kmes/user/socket_protocol.h"

namespace kmes::fuzz {
namespace {

constexpr char kResize = 'r';
constexpr char kRestart = 's';
constexpr char kDone = 'd';

std::unique_ptr<Producer> make(const std::string& address) {
    ProducerOptions options;
    options.cpus = kTablesCpus;
    options.boot_capacity_bytes = 4096;
    options.capacity_bytes = kTablesCapacity;
    auto producer = std::make_unique<Producer>(options);
    if (producer->start_without_registry() != 0) std::abort();
    producer->serve(address);
    return producer;
}

bool take(int fd, char* byte) {
    ssize_t got;
    do got = ::read(fd, byte, 1);
    while (got < 0 && errno == EINTR);
    return got == 1;
}

bool give(int fd, char byte) {
    return ::write(fd, &byte, 1) == 1;
}

void run(const std::string& address, int orders, int answers) {
    std::unique_ptr<Producer> producer = make(address);
    std::uint64_t capacity = kTablesCapacity;
    char order = 0;
    while (give(answers, kDone) && take(orders, &order)) {
        if (order == kRestart) {
            producer->retire();
            producer = nullptr;
            producer = make(address);
            capacity = kTablesCapacity;
        } else {
            capacity = capacity == kTablesCapacity ? kTablesOtherCapacity : kTablesCapacity;
            if (producer->resize(capacity) != 0) std::abort();
        }
    }
}

// Moves the descriptor away from the numbers that a program closes.
int out_of_the_way(int fd) {
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstReserved);
    ::close(fd);
    return moved;
}

}  // namespace

TablesProducer& TablesProducer::get() {
    static auto* const kProducer = new TablesProducer;
    return *kProducer;
}

TablesProducer::TablesProducer() {
    int answers[2];
    int orders[2];
    expect(::pipe2(answers, O_CLOEXEC) == 0 && ::pipe2(orders, O_CLOEXEC) == 0, "no pipe");
    const std::string address = free_address("tables");
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    expect(child >= 0, "no process for the producer");
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(0);
        ::close(orders[1]);
        ::close(answers[0]);
        try {
            run(address, orders[0], answers[1]);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "the producer: %s\n", error.what());
        }
        ::_exit(0);
    }
    ::close(orders[0]);
    ::close(answers[1]);
    orders_ = out_of_the_way(orders[1]);
    answers_ = out_of_the_way(answers[0]);
    char answer = 0;
    expect(take(answers_, &answer), "the producer does not start");
    ::setenv(KMES_SOCKET_ENVIRONMENT, address.c_str(), 1);
}

void TablesProducer::order(char what) {
    char answer = 0;
    expect(give(orders_, what) && take(answers_, &answer), "the producer has ended");
}

void TablesProducer::resize() {
    order(kResize);
    capacity_ = capacity_ == kTablesCapacity ? kTablesOtherCapacity : kTablesCapacity;
}

void TablesProducer::reset() {
    if (capacity_ != kTablesCapacity) resize();
}

void TablesProducer::restart() {
    order(kRestart);
    capacity_ = kTablesCapacity;
}

}  // namespace kmes::fuzz
