// SPDX-License-Identifier: MIT
//
// Prints a made-up report with all features, for the tests of its forms:
//
//   sample_report FORM [hostile]
//
// With `hostile`, every text is long, and contains all bytes and the markup of the form.
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/report/html.h"
#include "conformance/report/json.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {
namespace {

std::string hostile_text() {
    std::string text =
        "</script><script>document.title='owned'</script><img src=x onerror=\"alert(1)\">"
        "'\"--><!--]]>&lt;\xe2\x80\xae\xef\xbf\xbf\xed\xa0\x80";
    for (int byte = 0; byte < 256; ++byte) text.push_back(static_cast<char>(byte));
    return text + std::string(20000, 'w') + " end";
}

struct Texts {
    bool hostile = false;
    std::string operator()(std::string_view text) const {
        return hostile ? std::string(text) + hostile_text() : std::string(text);
    }
};

TraceRow row_of(std::uint64_t number, StepKind kind, std::int32_t thread, std::string text) {
    TraceRow row;
    row.number = number;
    row.kind = kind;
    row.thread = thread;
    row.cpu = 0;
    row.text = std::move(text);
    return row;
}

Trace sample_trace(const Texts& texts) {
    Trace trace;
    trace.threads = {1, 2};
    trace.left_out = texts("CPU 3; thread 4 (18 steps)");
    trace.rows.emplace_back();
    trace.rows[0].hidden = 107;
    trace.rows.push_back(row_of(108, StepKind::access, 1, texts("sets need_wake to 1")));
    trace.rows.back().place = texts("sleep_until_woken() consumer.c:209");
    trace.rows.back().clause = texts("5.1.8.2 step 1");
    trace.rows.back().change = texts("need_wake 0 -> 1");
    trace.rows.push_back(
        row_of(109, StepKind::wait_begin, 1, texts("futex_wait on futex_counter")));
    trace.rows.push_back(row_of(110, StepKind::producer, 0, texts("emits event 14: 30 bytes")));
    trace.rows.back().change = texts("write_pos 880 -> 910, futex_counter 7 -> 8");
    trace.rows.back().wakes = {1};
    trace.rows.push_back(row_of(111, StepKind::wait_end, 1, texts("is woken")));
    trace.rows.push_back(row_of(112, StepKind::scheduler, 0, texts("the suite stops all threads")));
    trace.rows.push_back(row_of(113, StepKind::producer, 0, texts("emits event 15: 30 bytes")));
    trace.rows.back().change = texts("write_pos 910 -> 940");
    trace.rows.back().decisive = true;
    trace.rows.back().why = texts("Event 15 is in the buffer from here on.");
    trace.rows.push_back(row_of(114, StepKind::access, 2, texts("reads write_pos: 940")));
    trace.rows.push_back(
        row_of(115, StepKind::wait_begin, 2, texts("futex_wait on futex_counter")));
    trace.rows.back().decisive = true;
    trace.rows.back().why = texts("The consumer goes to sleep for ever with event 15 published.");
    trace.rows.push_back(row_of(116, StepKind::end, 0, texts("FAILED, lost-wake-up")));
    return trace;
}

CaseResult failure(const Texts& texts) {
    CaseResult result;
    result.id = texts("E2/event-at-every-step");
    result.title = texts("an event before each access");
    result.verdict = Verdict::fail;
    result.clause = texts("5.1.8.2-2");
    result.message = texts("CPU 0: the consumer sleeps on unread event 15");
    result.what_is_done = texts("Publish one event before each metadata access.");
    result.what_is_right = texts("The consumer loads write_pos after it sets need_wake.");
    result.seconds = 1.5;
    result.replay = texts("kmes-conformance --filter E2/event-at-every-step -- ./consumer");
    result.cause = texts("a sleep on an old event");
    result.is_clause_assumed = true;
    result.saved = texts("kept/E2-event-at-every-step.json");
    result.explored = Explored{1840, 12.4, true};
    Finding finding;
    finding.code = FindingCode::lost_wake_up;
    finding.clause = result.clause;
    finding.message = result.message;
    finding.cpu = 0;
    finding.sequence = 15;
    finding.line = 3;
    result.findings = {finding, finding};
    result.findings[1].code = FindingCode::missing_event;
    result.findings[1].message = texts("CPU 0: event 15 was not delivered");
    result.history = texts("CPU 0 event 14: delivered in line 3\nCPU 0 event 15: not delivered\n");
    result.standard_error = texts("consumer: oh no\n");
    result.last_words = texts("consumer: oh no");
    result.trace = sample_trace(texts);
    return result;
}

RunReport sample(bool hostile) {
    const Texts texts{hostile};
    RunReport report;
    report.suite = {texts("0.20"), texts("0123abcd"), 1, 1};
    report.consumer = {texts("ring-reader"), texts("1.2")};
    report.shard = Shard{1, 2, {texts("E9/later")}};
    report.machine = {texts("Linux 6.1.0 x86_64"), texts("A processor"), 8};
    report.began = 1'795'718'400;
    report.options.filters = {texts("E2/*")};
    report.options.without = {texts("E3/*")};
    report.options.stream = texts("some events");
    report.options.device = texts("/dev/kmes");
    report.options.layout = texts("D");
    report.suite_cases = {2, 1, 1, 1};
    report.testee = {texts("./consumer"), texts("--fast")};
    report.cpus = 4;
    report.capacity_bytes = 65536;
    report.seed = UINT64_MAX;
    report.stepper = texts("guard pages: nothing prevents them");
    report.seconds = 42.125;
    for (const Verdict verdict : kVerdicts) {
        CaseResult result = failure(texts);
        if (verdict != Verdict::fail) {
            result = CaseResult{};
            result.id = texts("5.1.8/" + std::string(verdict_name(verdict)));
            result.title = texts("another case");
            result.verdict = verdict;
            result.clause = "5.1.8";
            if (verdict != Verdict::pass) result.message = texts("not decided: too slow");
        }
        result.level = verdict == Verdict::fail ? Level::erratum : Level::must;
        report.results.push_back(result);
    }
    report.not_run = {texts("E9/later")};
    for (const CaseResult& result : report.results) report.shard->cases.push_back(result.id);
    report.interrupted = true;
    report.differences = {{texts("E9/later"), texts("E9/later passed")}, {"", texts("no case")}};
    report.part_differences = {{texts("5.1.8/soak"), texts("5.1.8/soak passed")}};
    return report;
}

std::string text_in(std::string_view form, const RunReport& report) {
    if (form == "json") return to_json(report);
    if (form == "html") return to_html(report);
    return "";
}

}  // namespace
}  // namespace kmes::conformance

int main(int argument_count, char** arguments) {
    using namespace kmes::conformance;
    const bool hostile = argument_count > 2 && std::string_view(arguments[2]) == "hostile";
    const std::string text = text_in(argument_count > 1 ? arguments[1] : "", sample(hostile));
    if (text.empty()) return 2;
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
