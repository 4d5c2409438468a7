// SPDX-License-Identifier: MIT
//
// --debug: the commands of a person, and their effects.
#include "conformance/main/console_debugger.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <sstream>

#include "conformance/main/nearest.h"
#include "conformance/model/layout.h"
#include "conformance/oracle/layout.h"
#include "conformance/oracle/record.h"
#include "conformance/report/text.h"
#include "conformance/stage/data_names.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {
namespace {

constexpr std::chrono::seconds kFreezeLimit{10};
constexpr std::uint64_t kEventBytes = 100;

constexpr std::string_view kHelp =
    "  step, s             run to the next action of the consumer (an empty line does the same)\n  "
    "continue, c         run to the end of the case\n  accesses on|off     whether each access to "
    "a buffer is such an action (off at first)\n  state               print threads, positions, "
    "delivered and owed events\n  emit CPU [BYTES]    emit one more event; the oracle expects it, "
    "too\n  detach              detach from the testee, stopped by SIGSTOP, for gdb -p; ends the "
    "case\n  quit, q             end the case here\n  help, h             print this list\n";

std::string word_of(const BufferPlace& place) {
    return fmt::format("buffer {} at byte {}", place.buffer, place.offset_bytes);
}

std::string describe(const GuardHit& hit) {
    std::string text = fmt::format("thread {} is about to ", hit.tid);
    for (std::size_t i = 0; i < hit.accesses.size(); ++i) {
        const BufferAccess& access = hit.accesses[i];
        text += fmt::format(
            "{}{} {} byte{} of {}", i == 0 ? "" : " and ",
            access.is_write ? (access.is_read ? "read and write" : "write") : "read",
            access.size_bytes, access.size_bytes == 1 ? "" : "s", word_of(access.place));
    }
    if (hit.accesses.empty()) text += "access " + word_of(hit.place);
    return text + ": " + hit.code.describe();
}

std::string describe(const FutexWait& wait) {
    std::string text = fmt::format("thread {} goes to sleep", wait.tid);
    for (const FutexWord& word : wait.words) {
        text += fmt::format(" on {} (expects {}, there is {})", word_of(word.place),
                            word.value_expected, word.value_there);
    }
    return text;
}

}  // namespace

std::string describe_event(const TracerEvent& event) {
    if (const auto* attached = std::get_if<Attached>(&event)) {
        return fmt::format("kmes_attach with {} slots: {}", attached->request.slots_requested,
                           attached->error == 0 ? fmt::format("{} fds", attached->fds.size())
                                                : std::string(strerror(attached->error)));
    }
    if (const auto* mapped = std::get_if<Mapped>(&event)) {
        return fmt::format("thread {} mapped buffer {}: {} bytes at {:#x}", mapped->tid,
                           mapped->buffer, mapped->request.length_bytes, mapped->mapping.address);
    }
    if (const auto* wait = std::get_if<FutexWait>(&event)) return describe(*wait);
    if (const auto* end = std::get_if<FutexWaitEnd>(&event)) {
        if (end->thread_ended) return fmt::format("thread {} ended in the wait", end->tid);
        return fmt::format("thread {} is awake again: {}", end->tid,
                           end->result >= 0 ? "woken" : strerror(static_cast<int>(-end->result)));
    }
    if (const auto* hit = std::get_if<GuardHit>(&event)) return describe(*hit);
    if (const auto* ended = std::get_if<Ended>(&event)) return "it has " + ended->text;
    return {};
}

// Returns the end of a line: the place in the consumer that a trace shows for this step.
std::string ConsoleDebugger::place_text(const TracerEvent& event) {
    if (const auto* hit = std::get_if<GuardHit>(&event)) {
        if (hit->accesses.empty()) return "";
        const auto frames = reader_.frames(hit->code, hit->stack);
        const BufferAccess& access = hit->accesses.front();
        const std::uint64_t byte = access.place.offset_bytes;
        authors_.add_access(frames, byte < layout().metadata_bytes
                                        ? field_names(metadata_fields(), byte, access.size_bytes)
                                        : "data");
        const std::size_t index = authors_.of_access(frames);
        return index == 0 ? "" : ", for " + frame_text(frames, index);
    }
    const CallSite* site = nullptr;
    if (const auto* attached = std::get_if<Attached>(&event)) site = &attached->site;
    if (const auto* mapped = std::get_if<Mapped>(&event)) site = &mapped->site;
    if (const auto* wait = std::get_if<FutexWait>(&event)) site = &wait->site;
    if (site == nullptr || !site->stack) return "";
    const auto frames = reader_.frames(site->code, site->stack);
    const std::size_t index = authors_.of_call(frames);
    return frames[index].is_library ? "" : ", at " + frame_text(frames, index);
}

void ConsoleDebugger::at(Stage& stage, const TracerEvent& event) {
    if (const auto* attached = std::get_if<Attached>(&event)) {
        attached_ = attached_ || attached->error == 0;
    }
    // Each access counts: the place of a later one depends on it.
    const std::string place = attached_ ? place_text(event) : "";
    const bool is_access = std::holds_alternative<GuardHit>(event);
    const bool is_end = std::holds_alternative<Ended>(event);
    if (!attached_ || (is_access && !accesses_)) return;
    const std::string text = describe_event(event);
    if (text.empty() || (!stepping_ && !is_end)) return;
    if (!has_explained_) {
        has_explained_ = true;
        out_ << fmt::format(
            "the testee is process {}, stopped after its kmes_attach; there is no time limit.\nA "
            "program has one tracer, and that is the suite: enter a command here\n(help lists "
            "them), or `detach` first to use gdb -p {}.\n",
            stage.testee().tracer().testee_pid(), stage.testee().tracer().testee_pid());
    }
    out_ << printable(text + place) << "\n";
    if (!is_end) read_commands(stage);
}

void ConsoleDebugger::read_commands(Stage& stage) {
    for (;;) {
        out_ << "> " << std::flush;
        std::string line;
        if (!std::getline(in_, line)) {
            // The input has ended: continue to the end of the run.
            stepping_ = false;
            return;
        }
        if (execute(stage, line) == After::resume) return;
    }
}

ConsoleDebugger::After ConsoleDebugger::execute(Stage& stage, const std::string& line) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    std::string rest;
    std::getline(words >> std::ws, rest);
    if (word.empty() || word == "step" || word == "s") return After::resume;
    if (word == "continue" || word == "c") {
        stepping_ = false;
        return After::resume;
    }
    if (word == "accesses" && (rest == "on" || rest == "off")) {
        accesses_ = rest == "on";
    } else if (word == "state") {
        print_state(stage);
    } else if (word == "emit") {
        emit(stage, rest);
    } else if (word == "detach") {
        detach(stage);
    } else if (word == "quit" || word == "q") {
        stop_inconclusive("ended by hand (--debug)");
    } else if (word == "help" || word == "h") {
        out_ << kHelp;
    } else {
        out_ << "\"" << printable(line) << "\" is not a command"
             << did_you_mean({"step", "continue", "accesses", "state", "emit", "detach", "quit"},
                             word)
             << "; the commands are:\n"
             << kHelp;
    }
    return After::stay;
}

void ConsoleDebugger::print_state(Stage& stage) {
    const History& history = stage.rings().history();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        const BufferIndex index = history.current_buffer(cpu);
        const Buffer& buffer = history.buffer(index);
        out_ << fmt::format(
            "  CPU {}: buffer {}, capacity {}, tail_pos {}, write_pos {}, generation {}, "
            "futex_counter {}, need_wake {}; {} event{} so far\n",
            cpu, index, buffer.capacity, buffer.tail_pos, buffer.write_pos, buffer.generation(),
            stage.rings().counters().of(index), stage.rings().backend().need_wake(index),
            history.events_of(cpu).size(), history.events_of(cpu).size() == 1 ? "" : "s");
    }
    for (const ThreadState& thread : stage.testee().tracer().inspect().threads) {
        const char* doing = thread.activity == Activity::kBlocked ? "asleep"
                            : thread.activity == Activity::kHeld  ? "stopped"
                                                                  : "running";
        out_ << fmt::format("  thread {}: {}\n", thread.tid, doing);
    }
    const auto& records = stage.testee().records().records();
    out_ << fmt::format("  {} record{} written\n", records.size(), records.size() == 1 ? "" : "s");
}

void ConsoleDebugger::emit(Stage& stage, const std::string& arguments) {
    std::istringstream words(arguments);
    std::uint32_t cpu = 0;
    std::uint64_t bytes = kEventBytes;
    const bool given = static_cast<bool>(words >> cpu);
    if (given && !words.eof()) words >> bytes;
    const std::uint64_t half = stage.rings().capacity_bytes() / 2;
    if (!given || words.fail() || cpu >= stage.cpus() || bytes < kLeastEventBytes || bytes > half) {
        out_ << fmt::format("emit CPU [BYTES]: CPU below {}, BYTES from {} to {}\n", stage.cpus(),
                            kLeastEventBytes, half);
        return;
    }
    if (stage.rings().emissions().is_reserved(cpu)) {
        out_ << "this CPU is in the middle of an emission\n";
        return;
    }
    const Emitted emitted = stage.rings().emit(cpu, stage.rings().events().make(bytes));
    out_ << fmt::format("  event {} of CPU {} at position {}\n", emitted.sequence, cpu,
                        emitted.position);
}

void ConsoleDebugger::detach(Stage& stage) {
    const pid_t pid = stage.testee().tracer().testee_pid();
    if (!stage.testee().tracer().detach(Clock::now() + kFreezeLimit)) {
        out_ << "the testee could not be detached\n";
        return;
    }
    out_ << fmt::format(
        "process {} is stopped and free: gdb -p {} (then `continue`), or kill -CONT {}.\n"
        "The producer stays: emit and state work as before; kmes_attach gives ENOSYS from now on.\n"
        "quit kills it and ends the case.\n",
        pid, pid, pid);
    for (std::string line; out_ << "> " << std::flush, std::getline(in_, line);) {
        std::istringstream words(line);
        std::string word;
        words >> word;
        std::string rest;
        std::getline(words >> std::ws, rest);
        if (word == "quit" || word == "q") break;
        if (word == "emit") {
            emit(stage, rest);
        } else if (word == "state") {
            print_state(stage);
        } else {
            out_ << "emit CPU [BYTES], state, quit\n";
        }
    }
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) continue;
    stop_inconclusive("detached by hand (--debug, detach)");
}

}  // namespace kmes::conformance
