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

class Tracer::Engine {
  public:
    TracerHandlers handlers;
    TracerEffects effects;
};

Tracer::Tracer(TracerOptions) : engine_(std::make_unique<Engine>()) {}
Tracer::~Tracer() = default;
BufferId Tracer::add_buffer(const ServedBuffer&) {
    return 0;
}
void Tracer::set_attach_call(AttachCall, int) {}
TracerHandlers& Tracer::handlers() {
    return engine_->handlers;
}
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
Inspection Tracer::inspect() {
    return {};
}
Activity Tracer::activity(pid_t) {
    return Activity::kEnded;
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
void Tracer::unshare_processor() {}

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
const TracerEffects& Tracer::effects() const {
    return engine_->effects;
}
bool Tracer::has_io_uring() const {
    return false;
}
PageGuards Tracer::guards() {
    return PageGuards(*engine_);
}
CapturedOutput Tracer::output() {
    return CapturedOutput(*engine_);
}

bool PageGuards::add(MappingId, uint64_t, uint64_t) {
    return false;
}
bool PageGuards::remove_all(MappingId) {
    return false;
}
bool PageGuards::let_reads_pass(MappingId, bool) {
    return false;
}
GuardStep PageGuards::step(pid_t) {
    return {};
}
GuardStep PageGuards::step_torn(pid_t, uint32_t, const std::function<void()>&) {
    return {};
}
std::optional<NextInstruction> PageGuards::next_instruction(pid_t) {
    return std::nullopt;
}
bool PageGuards::step_over(pid_t) {
    return false;
}
Stepping PageGuards::stepping() const {
    return Stepping::kAutomatic;
}
std::string PageGuards::stepping_reason() const {
    return kReason;
}
WatchCheck PageGuards::watch_check() const {
    return {};
}

std::string CapturedOutput::read_report() {
    return "";
}
std::string CapturedOutput::standard_output() {
    return "";
}
std::string CapturedOutput::standard_error() {
    return "";
}

std::string why_not_traceable() {
    return kReason;
}
const CodeText& CodePlace::resolved() const {
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
