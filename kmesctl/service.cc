// SPDX-License-Identifier: MIT
//
// See service.h.
#include "kmesctl/service.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "kmes/abi.h"
#include "kmesctl/command.h"
#include "kmesctl/output.h"
#include "kmod/kmesctl/command.h"

namespace kmes::kmesctl {

sigset_t block_end_signals() {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        if (!is_ignored(signal)) sigaddset(&ends, signal);
    }
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    return ends;
}

void wait_for_end(const sigset_t& ends) {
    int signal = 0;
    while (sigwait(&ends, &signal) != 0) continue;
}

std::uint64_t capacity_option(const std::string& text) {
    const auto bytes = parse_bytes(text);
    if (!bytes || !std::has_single_bit(*bytes) || *bytes < KMES_CONFIG_CAPACITY_MIN_BYTES ||
        *bytes > KMES_CONFIG_CAPACITY_MAX_BYTES)
        throw Failure(
            kExitUsage,
            fmt::format("--capacity is \"{}\"; expected a power of two from 64K to 256M", text));
    return *bytes;
}

void serve_at(Producer* producer, const std::string& address, unsigned mode) {
    try {
        producer->serve(address, mode);
    } catch (const std::system_error& error) {
        const std::filesystem::path folder = std::filesystem::path(address).parent_path();
        std::error_code unknown;
        if (error.code().value() != ENOENT || address.starts_with('@') || folder.empty() ||
            std::filesystem::exists(folder, unknown))
            throw;
        throw Failure(kExitFailed,
                      fmt::format("cannot serve at {}: there is no folder {}; make it, or use an "
                                  "address without a file, such as --socket @kmes",
                                  address, folder.string()));
    }
}

void start_rings(Producer* producer) {
    if (const int error = producer->start_without_registry(); error != 0)
        throw std::system_error(-error, std::generic_category(), "cannot make the rings");
}

}  // namespace kmes::kmesctl
