// SPDX-License-Identifier: MIT
//
// The checks before the first case: whether the program can be started and traced, and how the
// suite stops at its accesses.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "conformance/stage/run.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

namespace {

// Returns why `path` cannot be started. Empty: no reason is visible from outside.
std::string why_not_startable(const std::string& path) {
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) return strerror(errno);
    if (S_ISDIR(status.st_mode)) return "this is a folder";
    if (access(path.c_str(), X_OK) != 0) return "this file is not executable (chmod +x)";
    return "";
}

// Returns why execvp does not find or start this program. Empty: no reason is visible.
std::string why_no_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        const std::string why = why_not_startable(name);
        return why.empty() ? "" : fmt::format("{}: {}", name, why);
    }
    const char* path = getenv("PATH");
    const std::string folders = path ? path : "/bin:/usr/bin";
    for (std::size_t begin = 0; begin <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        const std::string folder = folders.substr(begin, end - begin);
        if (why_not_startable((folder.empty() ? "." : folder) + "/" + name).empty()) return "";
        begin = end + 1;
    }
    struct stat status{};
    if (stat(name.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) return fmt::format("{}: this is a folder", name);
        const std::string why = why_not_startable("./" + name);
        return fmt::format("{}: not in PATH; the one in this folder is ./{}{}", name, name,
                           why.empty() ? "" : ": " + why);
    }
    return fmt::format("{}: not in PATH, and no file of this folder", name);
}

}  // namespace

std::string describe_stepper(const StageSettings& settings, std::uint32_t cpus_before) {
    constexpr int kChecksAtMost = 200;
    std::string reason;
    std::string end;
    Case first_attach;
    first_attach.id = "first-attach";
    first_attach.run = [&](Stage& stage) {
        RingsSetup setup = stage.default_setup();
        setup.cpus = 1;
        stage.set_up(setup);
        stage.hooks().set_on_mapped([&](const Mapped& mapped) {
            stage.guards().guard_mapping(mapped, Guarded::metadata);
            reason = stage.testee().tracer().guards().stepping_reason();
        });
        stage.start();
        for (int check = 0; check < kChecksAtMost && reason.empty() && !stage.testee().end();
             ++check)
            stage.waits().let_run(10);
        if (stage.testee().end()) end = stage.testee().end()->text;
        return CaseOutcome{Verdict::pass, "", "", ""};
    };
    StageSettings alone = settings;
    alone.debug = false;
    alone.debugger = nullptr;
    run_with_monitors(first_attach, alone, nullptr);
    if (!reason.empty()) return reason;
    std::string line = "not known: the consumer mapped no buffer in a first run with 1 CPU";
    if (cpus_before > 1) line += fmt::format(" (the check before it had {})", cpus_before);
    return end.empty() ? line : line + "; it has " + end;
}

std::string check_set_up(const StageSettings& settings) {
    if (settings.testee.empty()) return "no program is named; expected PROGRAM ARGS... after --";
    if (std::string why = why_no_program(settings.testee.front()); !why.empty()) return why;
    if (std::string why = why_not_traceable(); !why.empty()) return why;
    if (!settings.device.empty()) return why_no_device(settings.device);
    return "";
}

}  // namespace kmes::conformance
