// SPDX-License-Identifier: MIT
//
// Tracer for an architecture without an engine: it reports so at the end of every run. Built
// instead of the engine.

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {
namespace {

constexpr const char* kReason =
    "this runner traces programs on x86-64 only: run the conformance suite on such a machine";

}  // namespace

class Tracer::Engine {};

Tracer::Tracer(TracerOptions) {}
Tracer::~Tracer() = default;
BufferId Tracer::add_buffer(const ServedBuffer&) {
    return 0;
}
void Tracer::set_attach_handler(AttachHandler) {}
void Tracer::set_least_fd(int) {}
void Tracer::set_attach_call(AttachCall) {}
void Tracer::set_call_handler(CallHandler) {}
void Tracer::set_report_write_handler(ReportWriteHandler) {}
bool Tracer::detach(TimePoint) {
    return false;
}
void Tracer::start(const std::vector<std::string>&) {}
TracerEvent Tracer::wait(TimePoint) {
    Ended ended;
    ended.kind = EndKind::kNotTraceable;
    ended.text = kReason;
    return ended;
}
void Tracer::hold(pid_t) {}
void Tracer::release(pid_t) {}
bool Tracer::freeze_all(TimePoint) {
    return false;
}
void Tracer::thaw_all() {}
uint64_t Tracer::freezes() const {
    return 0;
}
Inspection Tracer::inspect() {
    return {};
}
Activity Tracer::activity(pid_t) {
    return Activity::kEnded;
}
std::optional<NextInstruction> Tracer::next_instruction(pid_t) {
    return std::nullopt;
}
bool Tracer::step_over(pid_t) {
    return false;
}
bool Tracer::set_wait_result(pid_t, int64_t) {
    return false;
}
std::vector<Mapping> Tracer::mappings() {
    return {};
}
std::vector<std::pair<int, BufferId>> Tracer::open_fds() {
    return {};
}
void Tracer::go_apart() {}

bool Tracer::guard_pages(MappingId, uint64_t, uint64_t) {
    return false;
}
bool Tracer::release_guards(MappingId) {
    return false;
}
bool Tracer::let_reads_pass(MappingId, bool) {
    return false;
}
void Tracer::set_guard_handler(GuardHandler) {}
GuardStep Tracer::step_guarded(pid_t) {
    return {};
}
GuardStep Tracer::step_guarded_torn(pid_t, uint32_t, const std::function<void()>&) {
    return {};
}
std::string Tracer::read_report() {
    return "";
}
std::string Tracer::standard_output() {
    return "";
}
std::string Tracer::standard_error() {
    return "";
}
void Tracer::kill_all() {}
pid_t Tracer::testee_pid() const {
    return 0;
}
std::vector<pid_t> Tracer::testee_threads() const {
    return {};
}
Interception Tracer::interception() const {
    return Interception::kAutomatic;
}
Stepping Tracer::stepping() const {
    return Stepping::kAutomatic;
}
std::string Tracer::stepping_reason() const {
    return kReason;
}
uint64_t Tracer::lost_stops() const {
    return 0;
}
uint64_t Tracer::redirected_calls() const {
    return 0;
}
const char* Tracer::call_refused_by_guards() const {
    return nullptr;
}
bool Tracer::has_io_uring() const {
    return false;
}
WatchCheck Tracer::watch_check() const {
    return {};
}
std::string why_not_traceable() {
    return kReason;
}
const CodeText& CodePlace::told() const {
    static const CodeText kNothing;
    return kNothing;
}
std::string CodePlace::describe() const {
    return "";
}
std::string Fault::describe() const {
    return "";
}

}  // namespace kmes::conformance
