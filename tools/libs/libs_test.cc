// SPDX-License-Identifier: MIT
//
// Each system library that tools/libs names can be compiled against, linked and called, in every
// configuration (the packages are built by another compiler than the sanitizer builds use).
#include <Zydis/Zydis.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace {

TEST(Libs, GoogleMockMatches) {
    EXPECT_THAT((std::vector<int>{3, 1, 2}), ::testing::UnorderedElementsAre(1, 2, 3));
}

TEST(Libs, RapidcheckProvesAndRefutes) {
    const auto detail = [](auto property) {
        rc::detail::TestMetadata metadata;
        rc::detail::TestParams params;
        params.maxSuccess = 50;
        return rc::detail::checkTestable(property, metadata, params);
    };
    rc::detail::SuccessResult success;
    EXPECT_TRUE(detail([](int a, int b) { return (a ^ b ^ b) == a; }).match(success));
    rc::detail::FailureResult failure;
    EXPECT_TRUE(detail([](const std::vector<int>& v) { return v.size() < 5; }).match(failure));
}

void count_up(benchmark::State& state) {
    int64_t n = 0;
    for (auto _ : state) benchmark::DoNotOptimize(++n);
}
BENCHMARK(count_up)->Iterations(10);

TEST(Libs, BenchmarkRuns) {
    EXPECT_EQ(benchmark::RunSpecifiedBenchmarks(), 1u);
}

TEST(Libs, ZydisDecodesAnExchange) {
    // xchg byte ptr [rdi + 132], al
    const std::array<uint8_t, 6> code = {0x86, 0x87, 0x84, 0x00, 0x00, 0x00};
    ZydisDecoder decoder;
    ASSERT_TRUE(
        ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)));
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ASSERT_TRUE(ZYAN_SUCCESS(
        ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands)));
    EXPECT_EQ(instruction.mnemonic, ZYDIS_MNEMONIC_XCHG);
    EXPECT_EQ(operands[0].mem.disp.value, 132);
}

TEST(Libs, FmtFormats) {
    EXPECT_EQ(fmt::format("{:08x}", 0x4b4d4553), "4b4d4553");
}

TEST(Libs, Cli11KeepsWhatFollowsTheDashes) {
    CLI::App app;
    int cpus = 0;
    std::vector<std::string> program;
    app.add_option("--cpus", cpus);
    app.add_option("program", program);
    const std::array<const char*, 6> argv = {"x", "--cpus", "4", "--", "testee", "--flag"};
    app.parse(static_cast<int>(argv.size()), argv.data());
    EXPECT_EQ(cpus, 4);
    EXPECT_THAT(program, ::testing::ElementsAre("testee", "--flag"));
}

TEST(Libs, JsonKeeps64Bits) {
    const auto parsed = nlohmann::json::parse(R"({"seed":18446744073709551615})");
    EXPECT_EQ(parsed.at("seed").get<uint64_t>(), UINT64_MAX);
}

}  // namespace
