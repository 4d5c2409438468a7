// SPDX-License-Identifier: MIT
//
// Random histories: a correct consumer is never blamed, and a broken one is always found. Each
// property runs 5,000 times, or as often as RC_PARAMS="max_success=..." says.
#include <gtest/gtest.h>

#include <set>

#include "conformance/oracle/property_support.h"
#include "conformance/oracle/simulation.h"

namespace kmes::conformance::simulation {
namespace {

constexpr int kRuns = 5000;

TEST(OracleProperty, NeverBlamesARightConsumer) {
    EXPECT_TRUE(holds("a right consumer is never blamed", kRuns, [] {
        World world(any_tape(), Fault::none);
        world.run();
        const std::vector<Finding> findings = world.findings();
        RC_LOG() << world.report() << describe(findings);
        RC_ASSERT(findings.empty());
    }));
}

void expect_found(Fault fault, const std::set<FindingCode>& codes) {
    int broken = 0;
    EXPECT_TRUE(holds("a broken consumer is found", kRuns, [&] {
        World world(any_tape(), fault);
        world.run();
        const std::vector<Finding> findings = world.findings();
        RC_LOG() << world.report() << describe(findings);
        if (!world.broken()) {
            // Without G records, more switches may be proven than broken() knows.
            RC_ASSERT(findings.empty() || fault == Fault::no_generation);
            return;
        }
        ++broken;
        RC_ASSERT(!findings.empty());
        bool found = false;
        for (const Finding& finding : findings) found = found || codes.count(finding.code) > 0;
        RC_ASSERT(found);
    }));
    // The fault must be committed in many runs, or the test proves nothing.
    EXPECT_GT(broken, kRuns / 100);
}

TEST(OracleProperty, FindsASkippedEvent) {
    expect_found(Fault::skip_one, {FindingCode::missing_event});
}

TEST(OracleProperty, FindsADoubledEvent) {
    expect_found(Fault::double_one, {FindingCode::doubled_event});
}

TEST(OracleProperty, FindsTwoEventsInTheWrongOrder) {
    expect_found(Fault::swap_two, {FindingCode::reordered_event});
}

TEST(OracleProperty, FindsAFlippedDigest) {
    expect_found(Fault::flip_digest, {FindingCode::torn_event, FindingCode::misread_event});
}

TEST(OracleProperty, FindsAWrongType) {
    expect_found(Fault::wrong_type, {FindingCode::torn_event, FindingCode::misread_event});
}

TEST(OracleProperty, FindsAWrongLossCount) {
    expect_found(Fault::wrong_loss, {FindingCode::wrong_loss_count});
}

TEST(OracleProperty, FindsAReadFromTheWrongPosition) {
    expect_found(Fault::wrong_position,
                 {FindingCode::torn_event, FindingCode::misread_event, FindingCode::invented_event,
                  FindingCode::malformed_record, FindingCode::doubled_event});
}

TEST(OracleProperty, FindsAnUnpublishedEvent) {
    expect_found(Fault::early_from_batch, {FindingCode::early_event});
}

TEST(OracleProperty, FindsAMissingGeneration) {
    expect_found(Fault::no_generation, {FindingCode::missing_generation});
}

}  // namespace
}  // namespace kmes::conformance::simulation
