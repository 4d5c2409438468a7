// SPDX-License-Identifier: MIT
//
// The public functions of Tracer, which call the engine.

#include "conformance/tracer/tracer.h"
#include "conformance/tracer/engine.h"

namespace kmes::conformance {

Tracer::Tracer(TracerOptions options) : engine_(std::make_unique<Engine>(std::move(options))) {}
Tracer::~Tracer() = default;

BufferId Tracer::add_buffer(const ServedBuffer& buffer) {
    return engine_->add_buffer(buffer);
}
void Tracer::set_attach_call(AttachCall call, int least_fd) {
    engine_->set_attach_call(call, least_fd);
}
TracerHandlers& Tracer::handlers() {
    return engine_->handlers();
}
bool Tracer::detach(TimePoint deadline) {
    return engine_->detach(deadline);
}
void Tracer::start(const std::vector<std::string>& arguments) {
    engine_->start(arguments);
}
TracerEvent Tracer::wait(TimePoint deadline) {
    return engine_->wait(deadline);
}
void Tracer::hold(pid_t tid) {
    engine_->tracees().set_held(tid, true);
}
void Tracer::release(pid_t tid) {
    engine_->tracees().set_held(tid, false);
}
bool Tracer::freeze_all(TimePoint deadline) {
    return engine_->freeze_all(deadline);
}
void Tracer::thaw_all() {
    engine_->tracees().set_frozen(false);
}
Inspection Tracer::inspect() {
    return engine_->inspect();
}
Activity Tracer::activity(pid_t tid) {
    return activity_of(tid);
}
bool Tracer::set_wait_result(pid_t tid, int64_t result) {
    return engine_->set_wait_result(tid, result);
}

std::vector<Mapping> Tracer::mappings() {
    return engine_->mappings();
}
std::vector<std::pair<int, BufferId>> Tracer::open_fds() {
    return engine_->open_fds();
}
void Tracer::unshare_processor() {
    engine_->unshare_processor();
}

void Tracer::kill_all() {
    engine_->kill_all();
}
pid_t Tracer::testee_pid() const {
    return engine_->tracees().testee();
}
std::vector<pid_t> Tracer::testee_threads() const {
    return engine_->tracees().testee_threads();
}
Interception Tracer::interception() const {
    return engine_->program().interception();
}
const TracerEffects& Tracer::effects() const {
    return engine_->effects();
}
bool Tracer::has_io_uring() const {
    return process_has_io_uring(engine_->tracees().live_testee_thread());
}

PageGuards Tracer::guards() {
    return PageGuards(*engine_);
}
CapturedOutput Tracer::output() {
    return CapturedOutput(*engine_);
}

bool PageGuards::add(MappingId mapping, uint64_t first_page, uint64_t page_count) {
    return engine_.guard_pages(mapping, first_page, page_count);
}
bool PageGuards::remove_all(MappingId mapping) {
    return engine_.release_guards(mapping);
}
bool PageGuards::let_reads_pass(MappingId mapping, bool pass) {
    return engine_.let_reads_pass(mapping, pass);
}
GuardStep PageGuards::step(pid_t tid) {
    return engine_.step_guarded(tid, nullptr);
}
GuardStep PageGuards::step_torn(pid_t tid, uint32_t split_bytes,
                                const std::function<void()>& between) {
    tracing::Torn torn{split_bytes, between};
    return engine_.step_guarded(tid, &torn);
}
std::optional<NextInstruction> PageGuards::next_instruction(pid_t tid) {
    return engine_.next_instruction(tid);
}
bool PageGuards::step_over(pid_t tid) {
    return engine_.step_over(tid);
}
Stepping PageGuards::stepping() const {
    return engine_.stepping().used();
}
std::string PageGuards::stepping_reason() const {
    return engine_.stepping().reason();
}
WatchCheck PageGuards::watch_check() const {
    return engine_.stepping().watchpoints().check();
}

std::string CapturedOutput::read_report() {
    return engine_.read_report();
}
std::string CapturedOutput::standard_output() {
    return engine_.output().standard_output();
}
std::string CapturedOutput::standard_error() {
    return engine_.output().standard_error();
}

std::string why_not_traceable() {
    return probe_abilities(false).why_not_traceable;
}

}  // namespace kmes::conformance
