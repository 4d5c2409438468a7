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
void Tracer::set_attach_handler(AttachHandler handler) {
    engine_->attach_handler_ = std::move(handler);
}
void Tracer::set_least_fd(int fd) {
    engine_->least_fd_ = fd;
}
void Tracer::set_attach_call(AttachCall call) {
    engine_->attach_call_ = call;
}
void Tracer::set_call_handler(CallHandler handler) {
    engine_->call_handler_ = std::move(handler);
}
void Tracer::set_report_write_handler(ReportWriteHandler handler) {
    engine_->report_write_handler_ = std::move(handler);
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
    engine_->hold(tid);
}
void Tracer::release(pid_t tid) {
    engine_->release(tid);
}
bool Tracer::freeze_all(TimePoint deadline) {
    return engine_->freeze_all(deadline);
}
void Tracer::thaw_all() {
    engine_->thaw_all();
}
uint64_t Tracer::freezes() const {
    return engine_->freezes_;
}
Inspection Tracer::inspect() {
    return engine_->inspect();
}
Activity Tracer::activity(pid_t tid) {
    return engine_->activity(tid);
}
std::optional<NextInstruction> Tracer::next_instruction(pid_t tid) {
    return engine_->next_instruction(tid);
}
bool Tracer::step_over(pid_t tid) {
    return engine_->step_over(tid);
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
void Tracer::go_apart() {
    engine_->go_apart();
}

bool Tracer::guard_pages(MappingId mapping, uint64_t first_page, uint64_t page_count) {
    return engine_->guard_pages(mapping, first_page, page_count);
}
bool Tracer::release_guards(MappingId mapping) {
    return engine_->release_guards(mapping);
}
bool Tracer::let_reads_pass(MappingId mapping, bool pass) {
    return engine_->let_reads_pass(mapping, pass);
}
void Tracer::set_guard_handler(GuardHandler handler) {
    engine_->guard_handler_ = std::move(handler);
}
GuardStep Tracer::step_guarded(pid_t tid) {
    return engine_->step_guarded(tid, nullptr);
}
GuardStep Tracer::step_guarded_torn(pid_t tid, uint32_t split_bytes,
                                    const std::function<void()>& between) {
    tracing::Torn torn{split_bytes, between};
    return engine_->step_guarded(tid, &torn);
}
std::string Tracer::read_report() {
    return engine_->read_report();
}
std::string Tracer::standard_output() {
    engine_->pump_output();
    return engine_->output_texts_[0].text();
}
std::string Tracer::standard_error() {
    engine_->pump_output();
    return engine_->output_texts_[1].text();
}
void Tracer::kill_all() {
    engine_->kill_all();
}
pid_t Tracer::testee_pid() const {
    return engine_->testee_;
}
std::vector<pid_t> Tracer::testee_threads() const {
    return engine_->testee_threads();
}
Interception Tracer::interception() const {
    return engine_->interception_;
}
Stepping Tracer::stepping() const {
    return engine_->stepping_;
}
std::string Tracer::stepping_reason() const {
    return engine_->stepping_reason_;
}

uint64_t Tracer::lost_stops() const {
    return engine_->lost_stops_;
}
uint64_t Tracer::redirected_calls() const {
    return engine_->redirected_calls_;
}

const char* Tracer::call_refused_by_guards() const {
    return engine_->call_refused_by_guards_;
}

bool Tracer::has_io_uring() const {
    return engine_->has_io_uring();
}
WatchCheck Tracer::watch_check() const {
    return engine_->watch_check_;
}

std::string why_not_traceable() {
    return probe_abilities(false).why_not_traceable;
}

}  // namespace kmes::conformance
