// SPDX-License-Identifier: MIT
//
// kmesctl emitters: the processes that have emitted by the socket of a producer, and their counts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/libkmes_parts.h"
#include "kmes/user/socket_protocol.h"
#include "kmesctl/command.h"
#include "kmesctl/output.h"

namespace kmes::kmesctl {
namespace {

struct EmittersOptions {
    std::string socket;
    bool is_json = false;
};

std::string explain(int error) {
    switch (-error) {
        case ENOSYS:
            return "no producer in userspace serves there; --socket names one";
        case EPERM:
        case EACCES:
            return "not permitted; the list needs the permission to attach";
        case EPROTO:
            return "this producer is of an earlier release, which does not count its emitters";
        default:
            return fmt::format("cannot ask the producer: {}", strerror(-error));
    }
}

// The first line is the sum of the emitters that are not listed.
std::string line_of(const struct kmes_socket_emitter& emitter, bool is_sum) {
    const std::string process =
        is_sum ? fmt::format("({} earlier)", emitter.emitters) : fmt::format("{}", emitter.process);
    const std::string user = is_sum ? "" : fmt::format("{}", emitter.user);
    return fmt::format("{:>16} {:>10} {:>14} {:>16} {:>10}\n", process, user, emitter.events,
                       emitter.bytes, emitter.refused);
}

std::string json_of(const struct kmes_socket_emitter& emitter, bool is_sum) {
    const std::string who =
        is_sum ? fmt::format("\"earlier\":{}", emitter.emitters)
               : fmt::format("\"pid\":{},\"uid\":{}", emitter.process, emitter.user);
    return fmt::format("{{{},\"events\":{},\"bytes\":{},\"refused\":{}}}\n", who, emitter.events,
                       emitter.bytes, emitter.refused);
}

int emitters(const EmittersOptions& options) {
    std::vector<struct kmes_socket_emitter> all(KMES_SOCKET_EMITTERS_MAX);
    __u32 count = 0;
    Output output;
    choose_socket(options.socket);
    if (const int error = kmes_socket_emitters(all.data(), &count); error != 0)
        throw Failure(kExitFailed, explain(error));
    if (!options.is_json)
        output.add(fmt::format("{:>16} {:>10} {:>14} {:>16} {:>10}\n", "pid", "uid", "events",
                               "bytes", "refused"));
    for (__u32 i = 1; i < count; ++i)
        output.add(options.is_json ? json_of(all[i], false) : line_of(all[i], false));
    if (options.is_json || all[0].emitters > 0 || all[0].events > 0)
        output.add(options.is_json ? json_of(all[0], true) : line_of(all[0], true));
    output.flush();
    return kExitDone;
}

}  // namespace

Runner declare_emitters(CLI::App& app) {
    auto options = std::make_shared<EmittersOptions>();
    app.add_option("--socket", options->socket,
                   "address of a producer in userspace: a path, or @NAME (default: $KMES_SOCKET, "
                   "or /run/kmes/producer.socket)")
        ->type_name("ADDRESS")
        ->check(wrong_address);
    app.add_flag("--json", options->is_json, "one JSON object per line");
    app.footer(
        "The latest emitter comes first. \"earlier\" is the sum of emitters that have ended. With\n"
        "more than 256 emitters, it includes those whose last event is the oldest.\n"
        "Exit status: 0 done, or the reader of the output has gone; 1 refused or failed;\n"
        "2 wrong usage.");
    return [options] { return emitters(*options); };
}

}  // namespace kmes::kmesctl
