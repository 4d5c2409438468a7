// SPDX-License-Identifier: MIT
//
// Serves kmes_attach in the testee (event-model.md, "Calls"; docs/layouts.md): the fds of all CPUs
// or the fd of one, and EFAULT as from a kernel. Knows injection and buffers. The runner's handler
// provides the answer.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "conformance/tracer/code.h"
#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

constexpr rlim_t kSpareDescriptors = 16;

bool is_writable(pid_t tid, uint64_t address, size_t size_bytes) {
    std::vector<char> content(size_bytes);
    return read_memory(tid, address, content.data(), size_bytes) &&
           write_memory(tid, address, content.data(), size_bytes);
}

// Errors that a program gets on a full machine or at its own limits. All others are faults of the
// runner.
bool is_honest_shortage(int64_t result) {
    return result == -EMFILE || result == -ENFILE || result == -ENOMEM;
}

}  // namespace

bool Tracer::Engine::ensure_scratch(Injection& injection, Thread& thread) {
    Process& process = process_of(thread);
    if (process.scratch != 0) return true;
    const int64_t address =
        injection.call(SYS_mmap, 0, ScratchSlots::kBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, ~uint64_t{0}, 0);
    if (address < 0) return false;
    process.scratch = static_cast<uint64_t>(address);
    if (is_testee(thread)) pointers_.slots().begin();
    return true;
}

int64_t Tracer::Engine::open_runner_fd(Injection& injection, Thread& thread, int runner_fd,
                                       int flags) {
    const std::string path =
        "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(runner_fd);
    return open_path(injection, thread, path, flags, flags == O_RDONLY);
}

// Executes openat in the testee. `is_ours`: the descriptor is closed before the testee resumes.
int64_t Tracer::Engine::open_path(Injection& injection, Thread& thread, const std::string& path,
                                  int flags, bool is_ours) {
    if (!ensure_scratch(injection, thread)) return injection.usable() ? -ENOMEM : -ESRCH;
    const uint64_t scratch = process_of(thread).scratch;
    // (Another thread may have ended the process.)
    if (!write_memory(thread.tid, scratch, path.c_str(), path.size() + 1))
        return errno == ESRCH || !injection.usable() ? -ESRCH : -EFAULT;
    const auto at_current = static_cast<uint64_t>(static_cast<int64_t>(AT_FDCWD));
    const auto open_flags = static_cast<uint64_t>(flags | O_CLOEXEC);
    const int64_t fd = injection.call(SYS_openat, at_current, scratch, open_flags, 0);
    if (fd != -EMFILE || !is_ours) return fd;
    // This descriptor is ours, so the testee's limit must not apply. It is restored at once.
    rlimit old{};
    if (prlimit(thread.process, RLIMIT_NOFILE, nullptr, &old) != 0) return fd;
    rlimit wider = old;
    wider.rlim_cur += kSpareDescriptors;
    if (wider.rlim_cur > wider.rlim_max) wider.rlim_max = wider.rlim_cur;
    if (prlimit(thread.process, RLIMIT_NOFILE, &wider, nullptr) != 0) return fd;
    const int64_t again = injection.call(SYS_openat, at_current, scratch, open_flags, 0);
    prlimit(thread.process, RLIMIT_NOFILE, &old, nullptr);
    return again;
}

void Tracer::Engine::set_attach_call(AttachCall form, int least_fd) {
    attach_.form = form;
    attach_.least_fd = least_fd;
}

// Moves the fd to a number from attach_.least_fd on. Returns the old number if none is free.
int64_t Tracer::Engine::move_fd_up(Injection& injection, int64_t fd) {
    if (fd < 0 || fd >= attach_.least_fd) return fd;
    const auto from = static_cast<uint64_t>(fd);
    const int64_t higher =
        injection.call(SYS_fcntl, from, F_DUPFD_CLOEXEC, static_cast<uint64_t>(attach_.least_fd));
    if (higher < 0) return fd;
    injection.call(SYS_close, from);
    return higher;
}

// Reports that an injected openat has failed. Its path is in memory of the tracer.
void Tracer::Engine::note_failed_open(Thread& thread, const char* what, int64_t error) {
    const uint64_t scratch = process_of(thread).scratch;
    const auto removal = error == -EFAULT ? mappings_.removals().last_of(scratch) : std::nullopt;
    // ESRCH: the thread was killed, and the testee's rights are not the reason.
    auto reason =
        error == -ESRCH ? TracerTrouble::Reason::none_known : TracerTrouble::Reason::its_rights;
    std::string text = what + std::string(strerror(static_cast<int>(-error)));
    if (error == -EFAULT) {
        reason = TracerTrouble::Reason::memory_removed;
        text += fmt::format(
            ". The suite has mapped memory at {:#x} in the testee for this call, and it is not "
            "mapped any more{}. A program may unmap only memory of its own: check the length",
            scratch, removal ? ". It was " + removal->describe() : "");
    }
    push(thread, TracerTrouble{thread.tid, text, reason});
}

// Returns whether the testee cannot write the memory of an argument, and notes why.
bool Tracer::Engine::note_bad_pointer(const Thread& thread, const char* argument, uint64_t address,
                                      size_t size_bytes, Attached& event) const {
    if (is_writable(thread.tid, address, size_bytes)) return false;
    ModuleTable modules;
    modules.entries = read_maps(thread.tid);
    if (modules.entries.empty()) return true;  // unreadable, or gone
    for (const uint64_t at : {address, address + size_bytes - 1}) {
        const MapsEntry* entry = modules.find(at);
        if (entry != nullptr && entry->writable) continue;
        event.bad_pointer = BadPointer{argument, at, entry != nullptr};
        if (entry == nullptr) event.bad_pointer->removal = mappings_.removals().last_of(at);
        break;
    }
    return true;
}

int Tracer::Engine::give_fds(Injection& injection, Thread& thread, const AttachAnswer& answer,
                             std::vector<int>& fds) {
    int64_t failed = 0;
    for (const BufferId id : answer.buffers) {
        const int64_t fd = move_fd_up(
            injection, open_runner_fd(injection, thread, buffers_.at(id).metadata_fd, O_RDWR));
        if (fd < 0) {
            failed = fd;
            break;
        }
        fds.push_back(static_cast<int>(fd));
    }
    if (failed == 0) return 0;
    for (const int fd : fds) injection.call(SYS_close, static_cast<uint64_t>(fd));
    fds.clear();
    if (!is_honest_shortage(failed))
        note_failed_open(thread, "the testee could not open a descriptor of the runner: ", failed);
    return static_cast<int>(-failed);
}

void Tracer::Engine::serve_attach(Thread& thread, const user_regs_struct& registers) {
    const bool is_foreign = tracees_.testee() != 0 && !is_testee(thread);
    if (!is_foreign) tracees_.choose_testee(thread.process);
    Injection injection(*this, thread);
    // Moves the thread to the exit of a call without effect, so that every answer is given in the
    // same way. That call is kmes_attach itself, which writes nothing here, whatever the kernel
    // returns. A filter of the testee permits it, but may refuse any other call.
    injection.call(call_number_of(registers));
    if (!injection.usable()) return;
    if (is_foreign) {
        injection.finish_call(-EPERM);
        push(thread, ForeignAttach{thread.process});
        return;
    }
    if (!end_.is_attached() && process_of(thread).reports_to_output)
        output_.take_report_from_output();
    end_.note_attach();
    Attached event;
    event.pid = thread.process;
    event.tid = thread.tid;
    event.request = {thread.process, thread.tid, attach_.calls++};
    event.site = call_site(thread, registers);
    if (attach_.form == AttachCall::kAllCpus)
        serve_all_cpus(injection, thread, registers, std::move(event));
    else
        serve_one_cpu(injection, thread, registers, std::move(event));
}

// For a testee whose memory cannot be read: no call can be served then.
void Tracer::Engine::note_unreadable(Thread& thread) {
    push(thread, TracerTrouble{thread.tid,
                               "the memory of the testee cannot be read, because the process "
                               "is undumpable or its file is not readable by this user",
                               TracerTrouble::Reason::its_rights});
}

void Tracer::Engine::note_attached(BufferId id, const AttachAnswer& answer) {
    buffers_.note_attached(id, attach_.calls);
    buffers_.note_capacity(id, answer.capacity_bytes);
}

AttachAnswer Tracer::Engine::ask_handler(const AttachRequest& request) const {
    return handlers_.attach ? handlers_.attach(request) : AttachAnswer{EAGAIN, {}, 0};
}

// Returns all fds or none; ERANGE with the number needed.
void Tracer::Engine::serve_all_cpus(Injection& injection, Thread& thread,
                                    const user_regs_struct& registers, Attached event) {
    const uint64_t fds_at = registers.rdi;
    const uint64_t count_at = registers.rsi;
    const uint64_t capacity_at = registers.rdx;
    event.request.array_given = fds_at != 0;
    AttachAnswer answer;
    errno = 0;
    const auto slots = read_value<int32_t>(thread.tid, count_at);
    if (!slots && errno == EPERM) note_unreadable(thread);
    const auto is_bad = [&](const char* argument, uint64_t address, size_t size_bytes) {
        return note_bad_pointer(thread, argument, address, size_bytes, event);
    };
    if (is_bad("count", count_at, sizeof(int32_t)) || !slots) {
        answer.error = EFAULT;
    } else {
        event.request.slots_requested = *slots;
        answer = ask_handler(event.request);
    }
    if (answer.error == 0 && answer.device) {
        attach_by_device(injection, thread, *answer.device, registers,
                         is_writable(thread.tid, capacity_at, sizeof(uint64_t)), event);
        return finish_attach(injection, thread, std::move(event));
    }
    const auto needed = static_cast<int32_t>(answer.buffers.size());
    if (answer.error == 0 && *slots < needed) {
        // Too few slots, or none: return the number needed, and no fd.
        write_memory(thread.tid, count_at, &needed, sizeof needed);
        event.count_written = needed;
        answer.error = ERANGE;
    }
    const size_t array_bytes = answer.buffers.size() * sizeof(int);
    if (answer.error == 0 &&
        (is_bad("fds", fds_at, array_bytes) || is_bad("capacity", capacity_at, sizeof(uint64_t))))
        answer.error = EFAULT;
    if (answer.error == 0) answer.error = give_fds(injection, thread, answer, event.fds);
    if (answer.error == 0) {
        write_memory(thread.tid, fds_at, event.fds.data(), array_bytes);
        write_memory(thread.tid, count_at, &needed, sizeof needed);
        write_memory(thread.tid, capacity_at, &answer.capacity_bytes, sizeof answer.capacity_bytes);
        event.count_written = needed;
        event.capacity_bytes = answer.capacity_bytes;
        event.buffers = answer.buffers;
        for (const BufferId id : answer.buffers) note_attached(id, answer);
    }
    event.error = answer.error;
    finish_attach(injection, thread, std::move(event));
}

// Returns the fd of one CPU; EINVAL for an unknown CPU. `*capacity` is checked first. It is written
// only together with an fd, or as the answer to kAskForCount.
void Tracer::Engine::serve_one_cpu(Injection& injection, Thread& thread,
                                   const user_regs_struct& registers, Attached event) {
    const auto cpu = static_cast<uint32_t>(registers.rdi);
    const uint64_t capacity_at = registers.rsi;
    event.request.cpu = cpu;
    event.request.asks_for_count =
        cpu == kAskForCount && attach_.form == AttachCall::kOneCpuOrCount;
    errno = 0;
    if (!read_value<uint64_t>(thread.tid, capacity_at) && errno == EPERM) note_unreadable(thread);
    AttachAnswer answer;
    if (note_bad_pointer(thread, "capacity", capacity_at, sizeof(uint64_t), event))
        answer.error = EFAULT;
    else
        answer = ask_handler(event.request);
    if (event.request.asks_for_count && answer.error == 0) {
        const uint64_t slots = answer.buffers.size();
        write_memory(thread.tid, capacity_at, &slots, sizeof slots);
        event.count_written = static_cast<int32_t>(slots);
        return finish_attach(injection, thread, std::move(event));
    }
    if (answer.error == 0 && cpu >= answer.buffers.size()) answer.error = EINVAL;
    if (answer.error == 0 && answer.device) {
        attach_cpu_by_device(injection, thread, *answer.device, capacity_at, event);
        return finish_attach(injection, thread, std::move(event));
    }
    if (answer.error == 0) {
        answer.buffers = {answer.buffers[cpu]};
        answer.error = give_fds(injection, thread, answer, event.fds);
    }
    if (answer.error == 0) {
        write_memory(thread.tid, capacity_at, &answer.capacity_bytes, sizeof answer.capacity_bytes);
        event.capacity_bytes = answer.capacity_bytes;
        event.buffers = answer.buffers;
        note_attached(answer.buffers.front(), answer);
        event.result = event.fds.front();
    }
    event.error = answer.error;
    finish_attach(injection, thread, std::move(event));
}

void Tracer::Engine::finish_attach(Injection& injection, Thread& thread, Attached event) {
    injection.finish_call(event.error != 0 ? -static_cast<int64_t>(event.error) : event.result);
    push(thread, std::move(event));
}

}  // namespace kmes::conformance
