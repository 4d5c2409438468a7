// SPDX-License-Identifier: MIT
//
// See tracees.h.

#include "conformance/tracer/tracees.h"

#include "conformance/tracer/proc.h"

namespace kmes::conformance::tracing {

Thread* Tracees::find(pid_t tid) {
    const auto found = threads_.find(tid);
    return found == threads_.end() ? nullptr : &found->second;
}

Thread& Tracees::add(pid_t tid, pid_t process) {
    Thread& thread = threads_[tid];
    thread.tid = tid;
    thread.process = process;
    return thread;
}

std::vector<pid_t> Tracees::all_threads() const {
    std::vector<pid_t> tids;
    for (const auto& [tid, thread] : threads_) tids.push_back(tid);
    return tids;
}

std::vector<pid_t> Tracees::testee_threads() const {
    if (testee_ == 0) return all_threads();
    std::vector<pid_t> tids;
    for (const auto& [tid, thread] : threads_) {
        if (is_testee(thread)) tids.push_back(tid);
    }
    return tids;
}

pid_t Tracees::live_testee_thread() const {
    for (const auto& [tid, thread] : threads_) {
        if (!is_testee(thread)) continue;
        const auto status = read_status(tid);
        if (status && status->state != 'Z' && status->state != 'X') return tid;
    }
    return 0;
}

Process& Tracees::process(pid_t process) {
    Process& record = processes_[process];
    record.pid = process;
    return record;
}

void Tracees::remove_siblings(const Thread& thread) {
    std::erase_if(threads_, [&](const auto& entry) {
        return entry.first != thread.tid && entry.second.process == thread.process;
    });
}

void Tracees::remove_process(pid_t process) {
    std::erase_if(threads_, [=](const auto& entry) { return entry.second.process == process; });
    processes_.erase(process);
    orphans_.note_end(process);
}

void Tracees::remove_testee_threads() {
    std::erase_if(threads_, [this](const auto& entry) { return is_testee(entry.second); });
}

void Tracees::set_held(pid_t tid, bool is_held) {
    if (Thread* thread = find(tid)) thread->held = is_held;
}

void Tracees::clear() {
    threads_.clear();
    processes_.clear();
    testee_ = 0;
}

}  // namespace kmes::conformance::tracing
