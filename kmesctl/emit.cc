// SPDX-License-Identifier: MIT
// kmesctl emit: emits events by libkmes, with any server.
#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "kmes/user/emitter.h"
#include "kmes/user/futex.h"
#include "kmesctl/command.h"
#include "kmesctl/source.h"
#include "kmod/kmesctl/text.h"

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kMostPerSecond = 1'000'000'000;
constexpr std::size_t kMostTypeBytes = 65535;
constexpr std::size_t kMostPayloadBytes = std::size_t{5} << 20;  // above the largest MaxEventSize
// A payload as hexadecimal digits with a space before each byte.
constexpr std::size_t kMostFileBytes = 3 * kMostPayloadBytes;
constexpr std::uint32_t kMostEntries = 256;
constexpr std::size_t kBatchBytes = std::size_t{64} << 10;
constexpr int kMostJsonDepth = 500;

struct EmitOptions {
    std::string socket;
    std::string type;
    std::string payload;
    std::string file;
    std::string count = "1";
    std::string rate;
    bool is_hex = false;
    bool is_json = false;
};

std::string read_all(const std::string& path) {
    const bool is_input = path == "-";
    const int fd = is_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::string content;
    char piece[65536];
    ssize_t bytes = fd < 0 ? -1 : 1;
    while (bytes > 0 && content.size() <= kMostFileBytes) {
        bytes = read(fd, piece, sizeof piece);
        if (bytes > 0) content.append(piece, static_cast<std::size_t>(bytes));
    }
    const int error = errno;
    if (fd >= 0 && !is_input) close(fd);
    const std::string name = is_input ? "standard input" : path;
    if (bytes < 0) throw Failure(kExitFailed, fmt::format("{}: {}", name, strerror(error)));
    if (content.size() > kMostFileBytes)
        throw Failure(kExitFailed, fmt::format("{}: more than {} bytes; no event is so large", name,
                                               kMostFileBytes));
    return content;
}

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Pairs of digits; white space between them is skipped.
std::string from_hex(const std::string& text) {
    std::string bytes;
    int high = -1;
    for (const char c : text) {
        if (strchr(" \t\r\n", c) != nullptr && c != '\0' && high < 0) continue;
        const int digit = digit_of(c);
        if (digit < 0)
            throw Failure(kExitUsage, fmt::format("--hex: '{}' is no hexadecimal digit", c));
        if (high < 0) {
            high = digit;
        } else {
            bytes += static_cast<char>(high << 4 | digit);
            high = -1;
        }
    }
    if (high >= 0)
        throw Failure(kExitUsage, "--hex: a digit is missing; two for each byte is right");
    return bytes;
}

std::string from_json(const std::string& text) {
    const auto check = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        if (depth > kMostJsonDepth)
            throw Failure(kExitUsage, fmt::format("--json: deeper than {} values", kMostJsonDepth));
        return true;
    };
    try {
        std::string bytes;
        nlohmann::json::to_msgpack(nlohmann::json::parse(text, check), bytes);
        return bytes;
    } catch (const nlohmann::json::exception& error) {
        throw Failure(kExitUsage, fmt::format("--json: {}", error.what()));
    }
}

std::string payload_option(const EmitOptions& options) {
    const std::string given = options.file.empty() ? options.payload : read_all(options.file);
    if (options.is_hex) return from_hex(given);
    return options.is_json ? from_json(given) : given;
}

[[noreturn]] void refuse(int error, std::uint64_t emitted, std::uint64_t count) {
    std::string reason =
        error == ENOSYS       ? explain_attach(-error)
        : error == ESHUTDOWN  ? "the producer has ended"
        : error == ECONNRESET ? "the producer has ended, and may have emitted the last ones"
        : error == EOPNOTSUPP ? "this producer takes no events from other processes"
        : error == EPERM      ? "emit is not permitted; CAP_AUDIT_WRITE, or access to the socket, "
                                "is needed"
                              : explain_error(Verb::emit, error);
    if (count > 1) reason += fmt::format(" ({} of {} events were emitted)", emitted, count);
    throw Failure(kExitFailed, reason);
}

struct CloseEmitter {
    void operator()(kmes_emitter* emitter) const { kmes_emitter_close(emitter); }
};
using Emitter = std::unique_ptr<kmes_emitter, CloseEmitter>;

Emitter open_emitter(std::uint64_t count) {
    kmes_emitter* emitter = nullptr;
    if (const int error = kmes_emitter_open(&emitter); error != 0) refuse(-error, 0, count);
    return Emitter(emitter);
}

// Sleeps until the `emitted`-th event is due.
void keep_rate(std::uint64_t begin_ns, std::uint64_t emitted, std::uint64_t rate) {
    const std::uint64_t due_ns =
        begin_ns + emitted / rate * kNsPerSecond + emitted % rate * kNsPerSecond / rate;
    const timespec due = {static_cast<time_t>(due_ns / kNsPerSecond),
                          static_cast<long>(due_ns % kNsPerSecond)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) continue;
}

int emit(const EmitOptions& options) {
    const std::uint64_t count = number_option("--count", options.count, 1, UINT64_MAX);
    const std::uint64_t rate =
        options.rate.empty() ? 0 : number_option("--rate", options.rate, 1, kMostPerSecond);
    if (options.type.empty() || options.type.size() > kMostTypeBytes)
        throw Failure(kExitUsage, "an event's type has 1 to 65535 bytes");
    const std::string payload = payload_option(options);
    choose_socket(options.socket);
    if (payload.size() > kMostPayloadBytes) refuse(ENOSPC, 0, 1);
    struct kmes_emit_entry entry = {};
    entry.type = options.type.data();
    entry.type_len = static_cast<__u16>(options.type.size());
    entry.payload = payload.data();
    entry.payload_len = static_cast<__u32>(payload.size());
    // A rate applies to each event. Without a rate, events are emitted in batches no larger than
    // necessary.
    const std::size_t event_bytes = options.type.size() + payload.size();
    const std::uint64_t most_at_a_time =
        rate > 0 ? 1 : std::clamp<std::uint64_t>(kBatchBytes / event_bytes, 1, kMostEntries);
    const std::vector<struct kmes_emit_entry> entries(std::min(count, most_at_a_time), entry);
    const Emitter emitter = open_emitter(count);
    const std::uint64_t begin_ns = kmes_clock_monotonic_ns();
    for (std::uint64_t emitted = 0; emitted < count;) {
        __u32 written = 0;
        const auto wanted =
            static_cast<__u32>(std::min<std::uint64_t>(count - emitted, entries.size()));
        if (rate > 0) keep_rate(begin_ns, emitted, rate);
        const int result =
            wanted == 1 ? kmes_emitter_emit(emitter.get(), options.type.data(), entry.type_len,
                                            payload.data(), entry.payload_len)
                        : kmes_emitter_emit_batch(emitter.get(), entries.data(), wanted, &written);
        if (result != 0) refuse(-result, emitted + (wanted == 1 ? 0 : written), count);
        emitted += wanted;
    }
    return kExitDone;
}

}  // namespace

Runner declare_emit(CLI::App& app) {
    auto options = std::make_shared<EmitOptions>();
    app.add_option("type", options->type, "type of the event, UTF-8")->required();
    auto* payload = app.add_option("payload", options->payload, "payload, as text");
    app.add_option("--file", options->file, "the payload is the content of FILE; -: standard input")
        ->type_name("FILE")
        ->excludes(payload);
    auto* hex =
        app.add_flag("--hex", options->is_hex, "the payload is given as hexadecimal digits");
    app.add_flag("--json", options->is_json,
                 "the payload is given as JSON, and emitted as MessagePack")
        ->excludes(hex);
    app.add_option("--count", options->count, "emit N such events (default 1)")->type_name("N");
    app.add_option("--rate", options->rate, "at most N events a second")->type_name("N");
    add_socket_option(app, &options->socket);
    app.footer(
        "Origin class 0 (userspace) is what KMES gives to each event of a process.\n"
        "`kmesctl --device PATH emit` emits by another device of the kernel module.\n"
        "Exit status: 0 all are emitted; 1 refused or failed; 2 wrong usage.");
    return [options] { return emit(*options); };
}

}  // namespace kmes::kmesctl
