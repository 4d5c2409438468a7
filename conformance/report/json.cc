// SPDX-License-Identifier: MIT
//
// The report as JSON.
#include "conformance/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

using Json = nlohmann::ordered_json;

Json case_to_json(const CaseResult& result) {
    Json value;
    value["id"] = valid_utf8(result.id);
    value["level"] = level_name(result.level);
    value["verdict"] = verdict_name(result.verdict);
    value["clause"] = valid_utf8(result.clause);
    value["message"] = valid_utf8(result.message);
    value["seconds"] = std::round(result.seconds * 1000) / 1000;
    value["replay"] = valid_utf8(result.replay);
    if (result.explored) {
        value["explored"]["schedules"] = result.explored->schedules;
        value["explored"]["seconds"] = std::round(result.explored->seconds * 1000) / 1000;
        value["explored"]["whole"] = result.explored->whole;
    }
    if (!result.saved.empty()) value["saved"] = valid_utf8(result.saved);
    return value;
}

}  // namespace

std::string to_json(const RunReport& report) {
    const Summary summary = summarise(report.results);
    Json value;
    value["schema"] = 1;
    value["suite"] = kSuiteName;
    value["testee"] = Json::array();
    for (const std::string& word : report.testee) value["testee"].push_back(valid_utf8(word));
    value["seed"] = report.seed;
    if (!report.stepper.empty()) value["stepper"] = valid_utf8(report.stepper);
    value["cases"] = Json::array();
    for (const CaseResult& result : report.results) value["cases"].push_back(case_to_json(result));
    // A run that ended early says so.
    if (report.interrupted) value["interrupted"] = true;
    for (const std::string& id : report.not_run) value["not_run"].push_back(valid_utf8(id));
    value["summary"]["pass"] = summary.pass;
    value["summary"]["fail"] = summary.fail;
    value["summary"]["inconclusive"] = summary.inconclusive;
    value["summary"]["unsupported"] = summary.unsupported;
    value["summary"]["suite_error"] = summary.suite_error;
    return value.dump(2) + "\n";
}

}  // namespace kmes::conformance
