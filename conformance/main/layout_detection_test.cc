// SPDX-License-Identifier: MIT
//
// The detected form for programs that attach like consumers of each form.
#include "conformance/main/layout_detection.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kmes::conformance {
namespace {

constexpr const char* kAttacher = "conformance/main/attacher";

DetectedLayout detect(const std::vector<std::string>& program, double scale = 4) {
    const StopFlag stop;
    return detect_layout(program, scale, stop);
}

TEST(LayoutDetection, KnowsEachFormByItsCalls) {
    const std::pair<const char*, const char*> programs[] = {
        {"A", "A"},        {"A-asks", "A"},   {"B", "B"},           {"B-asks", "B"},
        {"C", "C"},        {"C-from-2", "C"}, {"C-gives-up", "C"},  {"D", "D"},
        {"D-signed", "D"}, {"D-walks", "D"},  {"D-asks-later", "D"}};
    for (const auto& [argument, name] : programs) {
        const DetectedLayout found = detect({kAttacher, argument});
        EXPECT_EQ(found.layout->name, name) << argument << ": " << found.reason;
    }
}

// What tells form D from form C without the request for the number of slots.
TEST(LayoutDetection, SaysHowToChooseFormD) {
    EXPECT_EQ(detect({kAttacher, "D-walks"}).reason,
              "kmes_attach asks for CPU 1 after an EINVAL for CPU 0");
    EXPECT_EQ(detect({kAttacher, "C"}).reason,
              "kmes_attach asks for CPU 0, and for no other CPU after an EINVAL; for a consumer of "
              "form D that does so, use --layout D");
}

TEST(LayoutDetection, KnowsTheExamples) {
    EXPECT_EQ(detect({"conformance/testees/c_consumer"}).layout->name, "A");
    EXPECT_EQ(detect({"conformance/testees/form_d_consumer"}).layout->name, "D");
}

TEST(LayoutDetection, TakesFormAForWhatDoesNotAttach) {
    for (const auto& [program, scale] :
         {std::pair<std::vector<std::string>, double>{{kAttacher}, 4},
          {{kAttacher, "sleeps"}, 0.05},
          {{"/nonexistent"}, 4}}) {
        const DetectedLayout found = detect(program, scale);
        EXPECT_EQ(found.layout->name, "A");
        EXPECT_EQ(found.reason, "the program does not call kmes_attach");
        EXPECT_EQ(found.is_startable, program.front() == kAttacher);
    }
}

}  // namespace
}  // namespace kmes::conformance
