// SPDX-License-Identifier: MIT
//
// kmes-consumers KMESCTL FOLDER [--rate N] [--seconds N]: measures how many events of a steady
// stream each consumer reads, and the CPU time for an event. An event has 64 bytes. A producer
// emits on the first processor, and the consumers run in turn on the last one. FOLDER, on tmpfs,
// has the files of the recorder.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/peers/consumer_peer.h"
#include "bench/rows.h"
#include "kmes/user/futex.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/merge.h"
#include "kmes/user/producer.h"

namespace kmes::bench {
namespace {

constexpr std::uint64_t kEventBytes = 64;
constexpr std::uint64_t kRingBytes = 64 << 20;  // 0.1 s at 10 million events a second
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

struct Options {
    std::string kmesctl;
    std::string folder;
    std::uint64_t rate = 10'000'000;
    double seconds = 2;
    std::vector<std::string> peers;  // shared objects (peers/consumer_peer.h)
};

struct Outcome {
    double events = 0;
    double wall_seconds = 0;
    double cpu_seconds = 0;
};

std::vector<int> processors() {
    cpu_set_t set;
    std::vector<int> all;
    must(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) all.push_back(cpu);
    return all;
}

void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    must(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

// Calls `body` in a child, which ends with this process.
pid_t start(int cpu, const std::function<int()>& body) {
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_on(cpu);
    try {
        _exit(body());
    } catch (const std::exception& error) {
        fmt::print(stderr, "kmes-consumers: {}\n", error.what());
        _exit(1);
    }
}

// Emits batches at the rate, without an end. Emits a late batch at once.
int emit_for_ever(const std::string& address, std::uint64_t rate, int ready_fd) {
    const std::vector<std::byte> payload(kEventBytes - record_bytes(0), std::byte{'p'});
    const std::vector<BatchEntry> batch(kBatchEvents, {kType, payload});
    ProducerOptions options;
    options.capacity_bytes = kRingBytes;
    Producer producer(options);
    must(producer.start_without_registry() == 0, "start");
    producer.serve(address);
    must(write(ready_fd, "r", 1) == 1, "ready");
    const std::uint64_t begin_ns = kmes_clock_monotonic_ns();
    for (std::uint64_t emitted = 0;; emitted += kBatchEvents) {
        const double due_ns = static_cast<double>(emitted) * kNsPerSecond / rate;
        while (static_cast<double>(kmes_clock_monotonic_ns() - begin_ns) < due_ns)
            __builtin_ia32_pause();
        std::size_t written = 0;
        must(producer.emit_batch(0, batch, &written) == 0, "emit_batch");
    }
}

// -- Consumers in this program: each reads `events` events, and returns 0. ------------------------

int read_one_cpu(std::uint64_t events) {
    std::vector<std::byte> buffer(64 << 10);
    std::array<kmes_event_view, 16> views;
    kmes_reader_config config = {};
    kmes_reader reader;
    kmes_bulk bulk;
    kmes_reader_by_libkmes(&config, 0);
    must(kmes_reader_open(&reader, &config) == 0, "kmes_reader_open");
    for (std::uint64_t seen = 0; seen < events;) {
        const int found = kmes_reader_bulk(&reader, buffer.data(), buffer.size(), &bulk, nullptr);
        if (found == KMES_READ_EMPTY) kmes_reader_wait(&reader, KMES_NO_TIMEOUT);
        must(found >= 0, "kmes_reader_bulk");
        while (const unsigned count =
                   found == KMES_READ_EVENT ? kmes_bulk_take(&reader, &bulk, views.data(), 16) : 0)
            seen += count;
    }
    return 0;
}

struct Left {
    std::uint64_t events;
};

int count_event(void* context, const kmes_event_view*) {
    return --static_cast<Left*>(context)->events == 0 ? 1 : 0;
}

kmes_reader_set* open_set() {
    kmes_reader_set* set = nullptr;
    must(kmes_reader_set_open(&set, nullptr) == 0, "kmes_reader_set_open");
    return set;
}

int read_set(std::uint64_t events) {
    Left left = {events};
    kmes_reader_set* set = open_set();
    while (left.events > 0)
        must(kmes_reader_set_poll(set, KMES_NO_TIMEOUT, count_event, &left) >= 0, "poll");
    return 0;
}

int read_merge(std::uint64_t events) {
    Left left = {events};
    kmes_merge* merge = nullptr;
    must(kmes_merge_open(&merge, open_set(), nullptr) == 0, "kmes_merge_open");
    const auto count = [](void* context, const kmes_event_view* event, bool) {
        return count_event(context, event);
    };
    while (left.events > 0)
        must(kmes_merge_poll(merge, KMES_NO_TIMEOUT, count, &left) >= 0, "poll");
    return 0;
}

// -- kmesctl --------------------------------------------------------------------------------------

int execute(std::vector<std::string> words, const std::string& log) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int null = open("/dev/null", O_WRONLY);
    const int said = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(null >= 0 && said >= 0 && dup2(null, STDOUT_FILENO) >= 0 && dup2(said, STDERR_FILENO) >= 0,
         "the outputs of kmesctl");
    execvp(arguments[0], arguments.data());
    _exit(127);
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the number before `word` in the output of a program.
double number_before(const std::string& word, const std::string& said) {
    const auto end = said.find(word);
    must(end != std::string::npos, "no number of events");
    const auto begin = said.find_last_of(" (", end - 1);
    return strtod(said.c_str() + begin + 1, nullptr);
}

// The last line of `kmesctl record` has them apart from the events of the files that are kept.
double events_in_removed_files(const std::string& said) {
    const auto removed = said.find("--keep has removed");
    if (removed == std::string::npos) return 0;
    const std::string_view before = " with ";
    const auto begin = said.find(before, removed);
    must(begin != std::string::npos, "no number of events in removed files");
    return strtod(said.c_str() + begin + before.size(), nullptr);
}

// -- The table ------------------------------------------------------------------------------------

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

struct Row {
    std::string name;
    std::function<int(std::uint64_t events)> body;
    // Empty: the consumer ends after `events` events. Otherwise SIGINT ends it, some time after it
    // has created `file`. Its log then has the number of its events before `word`.
    std::string file;
    std::string log;
    std::string word;
};

// Waits until the file exists. Returns false if the child has ended before.
bool wait_for_file(const std::string& file, pid_t child) {
    siginfo_t ended = {};
    while (ended.si_pid == 0) {
        if (access(file.c_str(), F_OK) == 0) return true;
        usleep(1000);
        must(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0,
             "waitid");
    }
    return false;
}

Outcome measure_row(const Row& row, const Options& options, int cpu) {
    const auto events =
        static_cast<std::uint64_t>(static_cast<double>(options.rate) * options.seconds);
    Outcome outcome = {static_cast<double>(events), 0, 0};
    const std::uint64_t begin_ns = kmes_clock_monotonic_ns();
    const pid_t child = start(cpu, [&] { return row.body(events); });
    if (!row.log.empty() && wait_for_file(row.file, child)) {
        usleep(static_cast<useconds_t>(options.seconds * 1e6));
        kill(child, SIGINT);
    }
    int status = 0;
    rusage usage = {};
    must(wait4(child, &status, 0, &usage) == child, "wait4");
    // The signal kills perf, the other programs handle it.
    const bool is_ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT && !row.log.empty();
    must(!WIFEXITED(status) || WEXITSTATUS(status) != 127, "not installed");
    if (!row.log.empty() && status != 0 && !is_ended) throw std::runtime_error(read_file(row.log));
    must(status == 0 || is_ended, "it failed");
    outcome.wall_seconds = static_cast<double>(kmes_clock_monotonic_ns() - begin_ns) / 1e9;
    outcome.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    if (!row.log.empty()) {
        const std::string said = read_file(row.log);
        outcome.events = number_before(row.word, said) + events_in_removed_files(said);
    }
    return outcome;
}

std::string first_line(const std::string& text) {
    const auto begin = text.find_first_not_of(" \n");
    return begin == std::string::npos ? "no reason"
                                      : text.substr(begin, text.find('\n', begin) - begin);
}

// Prints a row, or a line with the reason if this machine does not permit it.
void print_row(const Row& row, const Options& options, int cpu) {
    try {
        const Outcome outcome = measure_row(row, options, cpu);
        fmt::print("{:<28}{:>16.0f}{:>16.1f}\n", row.name, outcome.events / outcome.wall_seconds,
                   outcome.cpu_seconds * 1e9 / outcome.events);
    } catch (const std::exception& error) {
        fmt::print("left out: {}: {}\n", row.name, first_line(error.what()));
    }
    fflush(stdout);
}

std::vector<Row> rows(const Options& options) {
    const std::string print_log = options.folder + "/print.log";
    const std::string record_log = options.folder + "/record.log";
    const auto print = [options, print_log](std::vector<std::string> more) {
        return [=](std::uint64_t events) {
            std::vector<std::string> words = {options.kmesctl, "print", "--count",
                                              std::to_string(events)};
            words.insert(words.end(), more.begin(), more.end());
            return execute(words, print_log);
        };
    };
    const auto record = [options, record_log](std::uint64_t) {
        return execute({options.kmesctl, "record", "-o", options.folder + "/events",
                        "--rotate-size", "64M", "--keep", "2"},
                       record_log);
    };
    return {{"reader of one CPU", read_one_cpu, "", "", ""},
            {"set", read_set, "", "", ""},
            {"merge", read_merge, "", "", ""},
            {"print > /dev/null", print({}), "", "", ""},
            {"print --json > /dev/null", print({"--json"}), "", "", ""},
            {"record to tmpfs", record, options.folder + "/events.1", record_log, " events in"}};
}

// -- Peers: each emitter runs on the first processor, as fast as it can. --------------------------

void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

// perf records the tracepoint of a system call. A process makes that call repeatedly.
void print_perf(const Options& options, const std::vector<int>& cpus) {
    const std::string log = options.folder + "/perf.log";
    const pid_t emitter = start(cpus.front(), [] {
        for (;;) syscall(SYS_getppid);
        return 0;
    });
    const auto record = [&](std::uint64_t) {
        return execute({"perf", "record", "-o", options.folder + "/perf.data", "-m", "64M", "-e",
                        "syscalls:sys_enter_getppid", "-p", std::to_string(emitter)},
                       log);
    };
    print_row({"perf record to tmpfs", record, options.folder + "/perf.data", log, " samples)"},
              options, cpus.back());
    end(emitter);
}

void print_peer(const std::string& path, const Options& options, const std::vector<int>& cpus) {
    void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // until the end of the process
    auto* get =
        object ? reinterpret_cast<ConsumerPeerInfo (*)()>(dlsym(object, "kmes_bench_consumer_peer"))
               : nullptr;
    if (!get) throw std::runtime_error("--peer " + path + ": not a consumer of bench/peers");
    const ConsumerPeerInfo info = get();
    std::unique_ptr<ConsumerPeer> peer;
    try {
        peer = info.make(kEventBytes);
    } catch (const std::exception& error) {
        fmt::print("left out: {}: {}\n", info.name, error.what());
        return;
    }
    const pid_t emitter = start(cpus.front(), [&] {
        peer->emit();
        return 0;
    });
    const auto consume = [&](std::uint64_t events) {
        peer->consume(events);
        return 0;
    };
    print_row({info.name, consume, "", "", ""}, options, cpus.back());
    end(emitter);
}

int run(const Options& options) {
    const std::vector<int> cpus = processors();
    // The process id is not enough: another PID namespace may have the same one.
    const std::string address =
        fmt::format("@kmes-consumers-{}-{}", getpid(), std::random_device()());
    int ready[2];
    char byte;
    must(pipe(ready) == 0, "pipe");
    setenv("KMES_SOCKET", address.c_str(), 1);
    const pid_t producer = start(cpus.front(), [&] {
        close(ready[0]);
        return emit_for_ever(address, options.rate, ready[1]);
    });
    close(ready[1]);
    must(read(ready[0], &byte, 1) == 1, "the producer does not start");
    fmt::print("{} events of {} bytes a second are emitted{}\n", options.rate, kEventBytes,
               cpus.size() > 1 ? "" : ", on the only processor");
    fmt::print("{:<28}{:>16}{:>16}\n", "consumer", "events/s", "CPU ns/event");
    for (const Row& row : rows(options)) print_row(row, options, cpus.back());
    end(producer);
    print_perf(options, cpus);
    for (const std::string& peer : options.peers) print_peer(peer, options, cpus);
    return 0;
}

}  // namespace
}  // namespace kmes::bench

int main(int argc, char** argv) {
    kmes::bench::Options options;
    CLI::App app(
        "Measures the events that a consumer reads from a steady stream, and its time for an "
        "event.");
    app.add_option("kmesctl", options.kmesctl, "path of kmesctl")->required();
    app.add_option("folder", options.folder, "folder for the files of the recorder")->required();
    app.add_option("--rate", options.rate, "emitted events per second")->check(CLI::PositiveNumber);
    app.add_option("--seconds", options.seconds, "duration for each consumer")
        ->check(CLI::PositiveNumber);
    app.add_option("--peer", options.peers, "a shared object of bench/peers, repeatable")
        ->expected(1);
    CLI11_PARSE(app, argc, argv);
    try {
        return kmes::bench::run(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "kmes-consumers: {}\n", error.what());
        return 3;
    }
}
