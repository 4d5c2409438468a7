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
#include <unordered_set>
#include <vector>

#include "conformance/report/json_extent.h"
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
constexpr std::size_t kMostJsonDepth = 500;

struct EmitOptions {
    std::string socket;
    std::string type;
    std::optional<std::string> payload;
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
            throw Failure(kExitUsage, fmt::format("--hex: '{}' is not a hexadecimal digit", c));
        if (high < 0) {
            high = digit;
        } else {
            bytes += static_cast<char>(high << 4 | digit);
            high = -1;
        }
    }
    if (high >= 0)
        throw Failure(kExitUsage, "--hex: a digit is missing; expected two for each byte");
    return bytes;
}

// Checks the depth, because to_msgpack is recursive. Checks the number of values, because a value
// of one byte of JSON takes about a hundred bytes of memory. The parser's callback is no
// alternative: it takes quadratic time for a list of objects.
void check_json(const std::string& text) {
    const conformance::JsonExtent extent = conformance::json_extent(text);
    if (extent.depth > kMostJsonDepth)
        throw Failure(kExitUsage, fmt::format("--json: deeper than {} values", kMostJsonDepth));
    if (extent.values > kMostPayloadBytes)
        throw Failure(kExitUsage, fmt::format("--json: more than {} values; no event holds so many",
                                              kMostPayloadBytes));
}

// Finds a name that an object has twice. The parser that makes the values would drop one of them,
// and reports no names but by its callback. The text is therefore parsed once for each.
class Names : public nlohmann::json_sax<nlohmann::json> {
  public:
    const std::string& repeated() const { return repeated_; }
    bool has_repeated() const { return has_repeated_; }

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override {
        names_.emplace_back();
        return true;
    }
    bool key(string_t& name) override {
        has_repeated_ = !names_.back().insert(name).second;
        if (has_repeated_) repeated_ = name;
        return !has_repeated_;
    }
    bool end_object() override {
        names_.pop_back();
        return true;
    }
    bool start_array(std::size_t) override { return true; }
    bool end_array() override { return true; }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

  private:
    std::vector<std::unordered_set<std::string>> names_;  // of the open objects
    std::string repeated_;
    bool has_repeated_ = false;
};

// `byte`: the number of the first invalid byte, from 1.
[[noreturn]] void refuse_json(std::string_view text, std::size_t byte) {
    constexpr std::size_t kMostShown = 20;
    if (byte > text.size())
        throw Failure(kExitUsage, "--json: the text is not JSON: it ends too early");
    const std::size_t from = byte > kMostShown ? byte - kMostShown : 0;
    throw Failure(kExitUsage, fmt::format("--json: the text is not JSON: byte {}, the last one of "
                                          "\"{}\", is invalid",
                                          byte, text.substr(from, byte - from)));
}

std::string from_json(const std::string& text) {
    check_json(text);
    Names names;
    nlohmann::json::sax_parse(text, &names);
    if (names.has_repeated())
        throw Failure(kExitUsage, fmt::format("--json: an object has the name \"{}\" twice; a map "
                                              "has each name once",
                                              names.repeated()));
    try {
        std::string bytes;
        nlohmann::json::to_msgpack(nlohmann::json::parse(text), bytes);
        return bytes;
    } catch (const nlohmann::json::parse_error& error) {
        refuse_json(text, error.byte);
    } catch (const nlohmann::json::exception&) {
        throw Failure(kExitUsage, "--json: a number is larger than a double can hold");
    }
}

std::string payload_option(const EmitOptions& options) {
    if ((options.is_hex || options.is_json) && !options.payload && options.file.empty())
        throw Failure(kExitUsage, fmt::format("{} needs PAYLOAD or --file",
                                              options.is_hex ? "--hex" : "--json"));
    const std::string given =
        options.file.empty() ? options.payload.value_or("") : read_all(options.file);
    if (options.is_hex) return from_hex(given);
    return options.is_json ? from_json(given) : given;
}

[[noreturn]] void refuse(int error, std::uint64_t emitted, std::uint64_t count) {
    std::string reason =
        error == ENOSYS       ? explain_attach(-error)
        : error == ESHUTDOWN  ? "the producer has ended"
        : error == ECONNRESET ? "the producer has ended, and may have emitted the last events"
        : error == EOPNOTSUPP ? "this producer takes no events from other processes"
        : error == EBUSY ? "the producer is busy, and has not emitted this event; try again later"
        : error == EPERM ? "emit is not permitted; it needs CAP_AUDIT_WRITE, or access to the "
                           "socket"
                         : explain_error(Verb::emit, error);
    if (count > 1) reason += fmt::format(" ({} of {} events were emitted)", emitted, count);
    // EINVAL: the type of the event is not valid.
    throw Failure(error == EINVAL ? kExitUsage : kExitFailed, reason);
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
        ->check(wrong_path)
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
        "Events of a process have origin class 0 (userspace).\n"
        "`kmesctl --device PATH emit` uses another device of the kernel module.\n"
        "Exit status: 0 all are emitted; 1 refused or failed; 2 wrong usage.");
    return [options] { return emit(*options); };
}

}  // namespace kmes::kmesctl
