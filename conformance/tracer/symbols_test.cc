// SPDX-License-Identifier: MIT
//
// Function names as their authors wrote them, in untrusted files.
#include "conformance/tracer/symbols.h"

#include <gtest/gtest.h>

#include <string>

namespace kmes::conformance::tracing {
namespace {

TEST(AsWritten, ReadsNamesOfCxxAndOfRust) {
    EXPECT_EQ(as_written("drain"), "drain");
    EXPECT_EQ(as_written("main.(*consumer).drain"), "main.(*consumer).drain");
    EXPECT_EQ(as_written("_ZN8consumer5drainEi"), "consumer::drain(int)");
    EXPECT_EQ(as_written("_ZN8consumer5drain17h0123456789abcdefE"), "consumer::drain");
    EXPECT_EQ(as_written("_ZN8consumer5drain17h0123456789abcdegE"),
              "consumer::drain::h0123456789abcdeg");
}

TEST(AsWritten, ReadsNamesOfFreePascal) {
    EXPECT_EQ(as_written("SYSTEM_$$_FPSYSCALL$INT64$INT64$$INT64"), "FPSYSCALL");
    EXPECT_EQ(as_written("SYSTEM_$$_MOVE$formal$formal$INT64"), "MOVE");
    EXPECT_EQ(as_written("KMESRING$_$TRING_$__$$_NEXT$$BOOLEAN"), "NEXT");
    EXPECT_EQ(as_written("CONSUMER_$$_RUN"), "RUN");
}

TEST(AsWritten, LeavesWhatIsNoNameAsItIs) {
    EXPECT_EQ(as_written("SYSTEM_$$_"), "SYSTEM_$$_");
    EXPECT_EQ(as_written("_$$_x"), "_$$_x");
    EXPECT_EQ(as_written("_ZN1_$$_x"), "_ZN1_$$_x");
    EXPECT_EQ(as_written(""), "");
    EXPECT_EQ(as_written("_Z"), "_Z");
    EXPECT_EQ(as_written("_ZN8consumer5dra"), "_ZN8consumer5dra");
    const std::string long_one = "_Z1f" + std::string(2000, 'i');
    EXPECT_EQ(as_written(long_one), long_one);
    // Nested substitutions would expand to megabytes of text.
    std::string doubled = "_Z1f";
    for (int i = 0; i < 20; ++i) doubled += "PFvS" + std::to_string(i % 10) + "_";
    EXPECT_EQ(as_written(doubled), doubled);
    const std::string nested = "_Z1f" + std::string(900, 'P') + "i";
    EXPECT_EQ(as_written(nested), nested);
}

TEST(SymbolAt, SaysNothingOfWhatIsNoElfFile) {
    EXPECT_EQ(symbol_at("/dev/null", 0), "");
    EXPECT_EQ(symbol_at("not/there", 0), "");
}

}  // namespace
}  // namespace kmes::conformance::tracing
