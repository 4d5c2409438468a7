// SPDX-License-Identifier: MIT
//
// kmesctl serve: the producer in userspace as a service.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/socket_protocol.h"
#include "kmesctl/command.h"
#include "kmesctl/passed_sockets.h"
#include "kmesctl/service.h"
#include "kmesctl/service_manager.h"

namespace kmes::kmesctl {
namespace {

constexpr unsigned kDefaultMode = 0600;

struct ServeOptions {
    std::string socket;
    std::string cpus;
    std::string capacity = "4M";
    std::string mode;
};

unsigned mode_of(const std::string& text) {
    if (text.empty()) return kDefaultMode;
    const bool is_octal =
        text.size() <= 4 && text.find_first_not_of("01234567") == std::string::npos;
    const unsigned long mode = is_octal ? std::stoul(text, nullptr, 8) : 01000;
    if (mode > 0777)
        throw Failure(
            kExitUsage,
            fmt::format("--mode is \"{}\"; expected octal permissions from 0 to 777", text));
    return static_cast<unsigned>(mode);
}

unsigned cpus_of(const std::string& text) {
    if (!text.empty()) return static_cast<unsigned>(number_option("--cpus", text, 1, kMaxCpus));
    return static_cast<unsigned>(
        std::clamp<long>(sysconf(_SC_NPROCESSORS_CONF), 1, static_cast<long>(kMaxCpus)));
}

std::string address_of(const ServeOptions& options) {
    if (!options.socket.empty()) return options.socket;
    choose_socket("");
    const char* named = getenv(KMES_SOCKET_ENVIRONMENT);
    return named != nullptr && *named != '\0' ? named : KMES_SOCKET_DEFAULT_ADDRESS;
}

// Serves, and returns the addresses.
std::string serve_somewhere(Producer* producer, const ServeOptions& options,
                            const std::vector<PassedSocket>& passed) {
    if (passed.empty()) {
        const std::string address = address_of(options);
        serve_at(producer, address, mode_of(options.mode));
        return address;
    }
    for (const PassedSocket& socket : passed) producer->serve_passed(socket.fd, socket.serves);
    return passed.size() == 1 ? "the socket of the service manager"
                              : "the sockets of the service manager";
}

int serve(const ServeOptions& options) {
    const std::vector<PassedSocket> passed = passed_sockets();
    if (!passed.empty() && !(options.socket.empty() && options.mode.empty()))
        throw Failure(kExitUsage,
                      "--socket and --mode cannot be used with a socket of the service manager; "
                      "its unit has the address and the permissions");
    ProducerOptions wanted;
    wanted.cpus = cpus_of(options.cpus);
    wanted.capacity_bytes = capacity_option(options.capacity);
    mode_of(options.mode);
    const sigset_t ends = block_end_signals();
    Producer producer(wanted);
    start_rings(&producer);
    const std::string where = serve_somewhere(&producer, options, passed);
    say(fmt::format("serves {} of {} bytes at {}", counted(wanted.cpus, "CPU"),
                    wanted.capacity_bytes, where));
    notify_service_manager("READY=1");
    wait_for_end(ends);
    notify_service_manager("STOPPING=1");
    producer.retire();
    return kExitDone;
}

}  // namespace

Runner declare_serve(CLI::App& app) {
    auto options = std::make_shared<ServeOptions>();
    app.add_option("--socket", options->socket,
                   "address: a path, or @NAME (default: $KMES_SOCKET, or "
                   "/run/kmes/producer.socket)")
        ->type_name("ADDRESS")
        ->check(wrong_address);
    app.add_option("--cpus", options->cpus, "number of rings (default: the CPUs of this machine)")
        ->type_name("N");
    app.add_option("--capacity", options->capacity,
                   "bytes of each ring: a power of two from 64K to 256M (default 4M)")
        ->type_name("BYTES");
    app.add_option("--mode", options->mode,
                   "permissions of the path, octal: who may attach and emit (default 600)")
        ->type_name("MODE");
    return [options] { return serve(*options); };
}

}  // namespace kmes::kmesctl
