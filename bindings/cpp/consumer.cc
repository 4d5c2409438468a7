// SPDX-License-Identifier: MIT
//
// A KMES consumer on kmes.hpp, in one thread for all CPUs, and a testee of the conformance suite:
// what a consumer does, and the records of docs/testee-contract.md.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cpp/kmes.hpp"

namespace {

class Report {
  public:
    void add(const std::string& line) {
        lines_ += line + "\n";
        if (lines_.size() >= 65536) flush();
    }
    // Whole lines in one write.
    void flush() {
        std::string_view rest = lines_;
        while (!rest.empty()) {
            const ssize_t written = write(fd_, rest.data(), rest.size());
            if (written < 0 && errno != EINTR)
                throw std::system_error(errno, std::generic_category(), "cannot write the report");
            if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
        }
        lines_.clear();
    }

  private:
    const char* variable_ = std::getenv("KMES_REPORT_FD");
    int fd_ = variable_ ? std::atoi(variable_) : 1;
    std::string lines_;
};

std::string digits(unsigned long long number, const char* format) {
    char text[24];
    std::snprintf(text, sizeof text, format, number);
    return text;
}

// The record of an event, and those that come before it. The contract counts losses from the first
// delivered event on, the set from the attach on.
std::string record_of(const kmes::event& event, bool is_first) {
    const std::string cpu = std::to_string(event.cpu);
    std::string type;
    for (const char byte : event.type) type += digits(static_cast<unsigned char>(byte), "%02llx");
    std::uint64_t digest = 0xcbf29ce484222325;  // 64-bit FNV-1a
    for (const std::byte byte : event.payload)
        digest = (digest ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
    std::string line;
    if (event.lost_before > 0 && !is_first)
        line = "L " + cpu + " " + std::to_string(event.lost_before) + "\n";
    return line + "E " + cpu + " " + std::to_string(event.sequence) + " " +
           std::to_string(event.timestamp_ns) + " " + std::to_string(event.origin) + " " + type +
           " " + std::to_string(event.payload.size()) + " " + digits(digest, "%016llx");
}

// The buffer itself is at fault: it is not one of KMES, or of an unknown version.
bool is_refusal(const std::error_code& error) {
    return error == std::errc::protocol_error || error == std::errc::protocol_not_supported ||
           error == std::errc::invalid_argument || error == std::errc::bad_message;
}

class Consumer {
  public:
    explicit Consumer(kmes::reader_set set) : set_(std::move(set)) {}

    void run() {
        for (unsigned cpu = 0; cpu < set_.cpus(); cpu++)
            if (!set_.error_of(cpu)) report_buffer(cpu, 0, set_.generation(cpu));
        for (;;) {
            for (const kmes::event& event : set_.available()) deliver(event);
            if (note_cpus() == 0) return report_.flush();
            report_.flush();
            std::error_code error;
            set_.wait(error);
            if (error && error != std::errc::interrupted && !is_refusal(error))
                throw std::system_error(error, "wait");
        }
    }

  private:
    void deliver(const kmes::event& event) {
        if (has_ended_.at(event.cpu)) return;
        const kmes_reader_buffer& buffer = set_.buffer(event.cpu);
        if (buffer.switches != switches_[event.cpu])
            report_buffer(event.cpu, buffer.switches, buffer.generation);
        report_.add(record_of(event, !has_begun_[event.cpu]));
        has_begun_[event.cpu] = true;
        has_ended_[event.cpu] = event.type == "kmes.conformance.end";
    }

    // Notes other buffers and refused ones. How many CPUs have not ended.
    unsigned note_cpus() {
        unsigned open = 0;
        for (unsigned cpu = 0; cpu < set_.cpus(); cpu++) {
            if (has_ended_[cpu]) continue;
            const std::error_code error = set_.error_of(cpu);
            const std::uint64_t switches = set_.statistics(cpu).switches;
            if (!error && switches != switches_[cpu])
                report_buffer(cpu, switches, set_.generation(cpu));
            if (is_refusal(error)) {
                report_.add("R " + std::to_string(cpu) + " " + error.message());
                has_ended_[cpu] = true;
            }
            open += !has_ended_[cpu];
        }
        return open;
    }

    void report_buffer(unsigned cpu, std::uint64_t switches, std::uint64_t generation) {
        switches_[cpu] = switches;
        report_.add("G " + std::to_string(cpu) + " " + std::to_string(generation));
    }

    kmes::reader_set set_;
    Report report_;
    std::vector<bool> has_begun_ = std::vector<bool>(set_.cpus());
    std::vector<bool> has_ended_ = std::vector<bool>(set_.cpus());
    std::vector<std::uint64_t> switches_ = std::vector<std::uint64_t>(set_.cpus());
};

// No CPU has a buffer that can be read.
int refuse_all(const std::error_code& error) {
    Report report;
    for (int cpu = 0; cpu < kmes_cpus_by_libkmes(); cpu++)
        report.add("R " + std::to_string(cpu) + " " + error.message());
    report.flush();
    return 0;
}

}  // namespace

int main() try {
    kmes_reader_set_options options = {};
    options.is_exclusive = true;  // nobody else sleeps on these rings (E12)
    std::error_code error;
    kmes::reader_set set = kmes::reader_set::open(error, options);
    if (is_refusal(error)) return refuse_all(error);
    if (error) throw std::system_error(error, "kmes_reader_set_open");
    Consumer(std::move(set)).run();
    return 0;
} catch (const std::exception& failure) {
    std::cerr << "consumer: " << failure.what() << "\n";
    return 1;
}
