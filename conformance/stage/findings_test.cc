// SPDX-License-Identifier: MIT
#include "conformance/stage/findings.h"

#include <gtest/gtest.h>

#include <optional>

#include "conformance/stage/stop.h"

namespace kmes::conformance {
namespace {

TEST(Findings, AreTakenInTheirOrder) {
    Findings findings;
    findings.blame("5.1.8", "first");
    findings.blame("5.1.7", "second");
    const std::optional<Finding> first = findings.take_first();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->clause, "5.1.8");
    EXPECT_EQ(first->message, "first");
    ASSERT_EQ(findings.all().size(), 1u);
    EXPECT_EQ(findings.all().front().message, "second");
    findings.take_first();
    EXPECT_FALSE(findings.take_first());
}

TEST(Findings, DistinguishAHangFromABlockForGood) {
    Findings findings;
    EXPECT_FALSE(findings.stands_still());
    findings.note_standstill(false);
    EXPECT_TRUE(findings.stands_still());
    EXPECT_FALSE(findings.has_hung());
    findings.note_standstill(true);
    EXPECT_TRUE(findings.has_hung());
}

TEST(Findings, KeepTheReasonsOfAllPartsThatWereNotPlayed) {
    Findings findings;
    EXPECT_EQ(findings.in_part(), "");
    for (const char* reason : {"a", "b", "a"}) findings.played_in_part(reason);
    EXPECT_EQ(findings.in_part(), "a; b");
    for (const char* reason : {"c", "d", "e"}) findings.played_in_part(reason);
    EXPECT_EQ(findings.in_part(), "a; b; c; and 2 more");
}

// A monitor that has seen a fault, or none.
class SomeMonitor : public Monitor {
  public:
    explicit SomeMonitor(std::optional<Finding> fault) : fault_(std::move(fault)) {}
    std::optional<Finding> fault() const override { return fault_; }

  private:
    std::optional<Finding> fault_;
};

TEST(Stops, AreThrownAtTheFaultOfAMonitor) {
    Monitors monitors;
    monitors.push_back(std::make_unique<SomeMonitor>(std::nullopt));
    EXPECT_NO_THROW(stop_at_fault(monitors));
    Finding fault;
    fault.message = "a fault";
    monitors.push_back(std::make_unique<SomeMonitor>(fault));
    try {
        stop_at_fault(monitors);
        FAIL() << "no Stop";
    } catch (const Stop& stop) {
        EXPECT_EQ(stop.verdict, Verdict::fail);
        EXPECT_EQ(stop.finding.message, "a fault");
    }
}

}  // namespace
}  // namespace kmes::conformance
