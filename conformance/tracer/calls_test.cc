// SPDX-License-Identifier: MIT
//
// The place in a program that is shown for an access through accessors of each kind.
#include "conformance/tracer/calls.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <random>
#include <set>

#include "conformance/tracer/backtrace.h"
#include "conformance/tracer/source_line.h"
#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::StartsWith;
using tracer_testing::testdata;
using tracer_testing::TestRun;

struct Access {
    std::uint64_t offset_bytes = 0;
    std::vector<CodeFrame> frames;
    CodePlace code{};
    std::shared_ptr<const tracing::StackSnapshot> stack{};
};

TracerOptions with_stacks() {
    TracerOptions options;
    options.keep_stacks = true;
    return options;
}

// Returns the accesses of the program until it ends or sleeps, or until there are `most`.
std::vector<Access> accesses_of(TestRun& run, std::size_t most) {
    std::vector<Access> accesses;
    const auto mapped = run.next<Mapped>();
    if (!mapped || !run.tracer.guards().add(mapped->mapping.id, 0, 2)) return accesses;
    CallReader reader;
    run.finish([&](const TracerEvent& event) {
        // After this, no thread wakes the program.
        if (std::holds_alternative<FutexWait>(event)) return run.tracer.kill_all();
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        accesses.push_back(
            {hit->place.offset_bytes, reader.frames(hit->code, hit->stack), hit->code, hit->stack});
        if (accesses.size() >= most)
            run.tracer.kill_all();
        else
            run.tracer.guards().step(hit->tid);
    });
    return accesses;
}

// The texts as the trace shows them, without repetitions in a row.
std::vector<std::string> texts_of(const std::vector<Access>& accesses) {
    AuthorsFrames authors;
    for (const Access& access : accesses)
        authors.add_access(access.frames,
                           std::to_string(std::min(access.offset_bytes, kPageBytes)));
    std::vector<std::string> texts;
    for (const Access& access : accesses) {
        std::string text = frame_text(access.frames, authors.of_access(access.frames));
        if (texts.empty() || texts.back() != text) texts.push_back(std::move(text));
    }
    return texts;
}

// Returns the expected texts in the comments of the source, in the order of the file.
std::vector<std::string> wanted_of(const std::string& source) {
    std::ifstream lines(testdata(source));
    std::vector<std::string> wanted;
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const std::size_t at = line.rfind("  // ");
        if (at == std::string::npos || line.find(';') == std::string::npos) continue;
        const std::string text = line.substr(at + 5);
        const std::size_t via = text.find(" via ");
        std::string place = text.substr(0, via) + "() " + source + ":" + std::to_string(number);
        if (via != std::string::npos)
            place += " (via " + text.substr(via + 5, text.find('*') - via - 5);
        wanted.push_back(std::move(place));
    }
    return wanted;
}

// Each text begins as the expected one, which may lack the rest of a name.
::testing::Matcher<std::vector<std::string>> BeginAs(const std::vector<std::string>& texts) {
    std::vector<::testing::Matcher<std::string>> each;
    for (const std::string& text : texts) each.push_back(StartsWith(text));
    return ElementsAreArray(each);
}

class CallsTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Builds, CallsTest, testing::Values("callers_O0", "callers_O2"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(CallsTest, EachAccessIsShownAtItsPlaceInTheProgram) {
    TestRun run(with_stacks(), 1);
    run.start("", GetParam());
    const std::vector<std::string> texts = texts_of(accesses_of(run, 1000));
    std::vector<std::string> places = wanted_of("callers.cc");
    ASSERT_GT(places.size(), 2u);
    // In the order of execution: is_replaced() comes first in the file and is called last but one.
    std::rotate(places.begin(), places.begin() + 1, places.end() - 1);
    // (memcpy reads in several places.)
    ASSERT_GE(texts.size(), places.size()) << testing::PrintToString(texts);
    EXPECT_THAT(std::vector(texts.begin(), texts.begin() + static_cast<long>(places.size())),
                BeginAs(places));
}

// The place of each system call that the tracer reports, until the program ends or sleeps.
std::map<std::string, std::string> texts_of_calls(TestRun& run) {
    std::map<std::string, std::string> texts;
    CallReader reader;
    const auto put = [&](const std::string& call, const CallSite& site) {
        EXPECT_TRUE(site.stack) << call;
        const std::vector<CodeFrame> frames = reader.frames(site.code, site.stack);
        texts[call] = frame_text(frames, AuthorsFrames().of_call(frames));
    };
    run.finish([&](const TracerEvent& event) {
        if (const auto* attached = std::get_if<Attached>(&event)) put("attach", attached->site);
        if (const auto* mapped = std::get_if<Mapped>(&event)) put("map", mapped->site);
        const auto* wait = std::get_if<FutexWait>(&event);
        if (wait == nullptr) return;
        put("wait", wait->site);
        run.tracer.kill_all();  // after this, no thread wakes the program
    });
    return texts;
}

TEST_P(CallsTest, ASystemCallIsShownAtItsPlaceInTheProgram) {
    for (const Interception interception : {Interception::kSeccomp, Interception::kEveryCall}) {
        TracerOptions options = with_stacks();
        options.interception = interception;
        TestRun run(options, 1);
        run.start("", GetParam());
        std::map<std::string, std::string> texts = texts_of_calls(run);
        EXPECT_THAT(texts["attach"], ContainsRegex("^main[(][)] callers.cc:[0-9]+ [(]via attach"));
        EXPECT_THAT(texts["map"], ContainsRegex("^main[(][)] callers.cc:[0-9]+ [(]via .*mmap"));
    }
}

class LeafsTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Builds, LeafsTest,
                         testing::Values("callers_leaf_O0", "callers_leaf_O2",
                                         "callers_leaf_no_tables"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(LeafsTest, TheCallerOfCodeWithoutUnwindTablesIsKnown) {
    TestRun run(with_stacks(), 1);
    run.start("", GetParam());
    EXPECT_THAT(texts_of(accesses_of(run, 1000)), BeginAs(wanted_of("callers_leaf.c")));
}

TEST(Calls, TheCallerIsKnownWithoutUnwindTablesAndSymbols) {
    TestRun run(with_stacks(), 1);
    run.start("", "callers_leaf_stripped");
    const std::vector<Access> accesses = accesses_of(run, 1000);
    ASSERT_GE(accesses.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
        ASSERT_GE(accesses[i].frames.size(), 2u) << i;
        EXPECT_THAT(accesses[i].frames[1].place,
                    ContainsRegex("^callers_leaf_stripped[+]0x[0-9a-f]+$"));
        EXPECT_NE(accesses[i].frames[1].place, accesses[i].frames[0].place);
    }
    EXPECT_NE(accesses[0].frames[1].place, accesses[1].frames[1].place);
}

// A testee can have any registers and any stack.
TEST(Calls, AnyStackIsRead) {
    for (const char* program : {"callers_leaf_O2", "callers_leaf_stripped"}) {
        TestRun run(with_stacks(), 1);
        run.start("", program);
        const std::vector<Access> accesses = accesses_of(run, 1000);
        ASSERT_GE(accesses.size(), 6u);
        std::mt19937_64 random(1);
        CallReader reader;
        for (int i = 0; i < 2000; ++i) {
            const Access& access = accesses[random() % accesses.size()];
            auto stack = std::make_shared<tracing::StackSnapshot>(*access.stack);
            const std::uint64_t words = stack->bytes.size() / 8;
            for (int k = 0; k < 8 && words > 0; ++k) {
                // A place in the program, on the stack, or anywhere.
                const std::uint64_t values[] = {stack->registers.rip + random() % 512 - 256,
                                                stack->registers.rsp + random() % 256, random()};
                std::memcpy(&stack->bytes[8 * (random() % std::min<std::uint64_t>(words, 16))],
                            &values[random() % 3], 8);
            }
            if (i % 4 == 0) stack->registers.rbp = random();
            if (i % 8 == 1) stack->registers.rsp = ~std::uint64_t{0} - random() % 64;
            if (i % 8 == 2) stack->registers.rip += random() % 64;
            if (i % 8 == 3) stack->bytes.resize(random() % 64);
            EXPECT_LE(reader.frames(access.code, stack).size(), 64u);
        }
    }
}

TEST(Calls, AProgramWithoutSymbolsIsShownByItsOffsets) {
    TestRun run(with_stacks(), 1);
    run.start("", "callers_stripped");
    const std::vector<std::string> texts = texts_of(accesses_of(run, 1000));
    ASSERT_GE(texts.size(), 5u);
    EXPECT_THAT(texts[0], ContainsRegex("^callers_stripped[+]0x[0-9a-f]+$"));
    // The C library has its unwind tables.
    EXPECT_THAT(texts.back(), ContainsRegex("^callers_stripped[+]0x[0-9a-f]+ [(]via .*mem"));
}

TEST(Calls, WithoutAStackThereAreNoCallers) {
    TestRun run({}, 1);
    run.start("", "callers_O0");
    const std::vector<Access> accesses = accesses_of(run, 2);
    ASSERT_EQ(accesses.size(), 2u);
    EXPECT_EQ(accesses[1].frames.size(), 1u);
    EXPECT_EQ(accesses[1].frames[0].function, "load");
}

// A page that consumers accept.
void make_buffer(std::uint8_t* page) {
    const std::uint32_t version = 1;
    const std::uint64_t capacity = 65536;
    const std::uint64_t data_offset = kPageBytes;
    std::memcpy(page, "KMESRING", 8);
    std::memcpy(page + 8, &version, sizeof version);
    std::memcpy(page + 16, &capacity, sizeof capacity);
    std::memcpy(page + 24, &data_offset, sizeof data_offset);
}

// Returns false if the consumer was not built.
bool start_consumer(TestRun& run, const std::string& name) {
    const std::string folder = "conformance/testees/";
    std::ifstream toolchain(folder + name + ".toolchain");
    std::string version;
    if (!std::getline(toolchain, version) || version == "none") return false;
    make_buffer(run.buffers[0]->metadata());
    run.start("", "../../testees/" + name);
    return true;
}

// Runs the consumer until it sleeps. Returns nothing if it was not built.
std::vector<std::string> texts_of_consumer(const std::string& name) {
    TestRun run(with_stacks(), 1);
    if (!start_consumer(run, name)) return {};
    return texts_of(accesses_of(run, 20));
}

TEST(Calls, AConsumerInGo) {
    const std::vector<std::string> texts = texts_of_consumer("go_consumer");
    if (texts.empty()) GTEST_SKIP() << "there was no go";
    EXPECT_THAT(texts, ::testing::Contains(
                           ContainsRegex("^takeBuffer[(][)] consumer.go:[0-9]+ [(]via load[)]$")));
    EXPECT_THAT(texts, ::testing::Contains(
                           ContainsRegex("^drain[(][)] consumer.go:[0-9]+ [(]via load[)]$")));
}

TEST(Calls, ASystemCallOfAConsumerInGo) {
    TestRun run(with_stacks(), 1);
    if (!start_consumer(run, "go_consumer")) GTEST_SKIP() << "there was no go";
    std::map<std::string, std::string> texts = texts_of_calls(run);
    EXPECT_THAT(texts["attach"], ContainsRegex("^attach[(][)] consumer.go:[0-9]+ [(]via Syscall"));
    EXPECT_THAT(texts["map"], ContainsRegex("^takeBuffer[(][)] consumer.go:[0-9]+ [(]via Mmap"));
    EXPECT_THAT(texts["wait"], ContainsRegex("^[a-zA-Z]+[(][)] consumer.go:[0-9]+ [(]via Sys"));
}

class RustTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Builds, RustTest,
                         testing::Values("rust_consumer_lines", "rust_consumer_debug"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RustTest, AConsumerInRust) {
    const std::vector<std::string> texts = texts_of_consumer(GetParam());
    if (texts.empty()) GTEST_SKIP() << "there was no rustc";
    EXPECT_THAT(texts, ::testing::Contains(
                           ContainsRegex("^drain[(][)] consumer.rs:[0-9]+ [(]via load[)]$")));
    EXPECT_THAT(texts, ::testing::Each(ContainsRegex(" consumer.rs:[0-9]+")));
}

TEST_P(RustTest, ASystemCallOfAConsumerInRust) {
    TestRun run(with_stacks(), 1);
    if (!start_consumer(run, GetParam())) GTEST_SKIP() << "there was no rustc";
    std::map<std::string, std::string> texts = texts_of_calls(run);
    EXPECT_THAT(texts["attach"], ContainsRegex("^[a-z_]+[(][)] consumer.rs:[0-9]+ [(]via syscall"));
    EXPECT_THAT(texts["map"], ContainsRegex("^[a-z_]+[(][)] consumer.rs:[0-9]+ [(]via .*mmap"));
    EXPECT_THAT(texts["wait"], ContainsRegex("^[a-z_]+[(][)] consumer.rs:[0-9]+ [(]via syscall"));
}

// The functions of scopes.S, in the order of the code. A library has a * after its name.
std::vector<std::string> functions_of(const std::string& path) {
    std::vector<std::string> functions;
    for (std::uint64_t offset = 0x1000; offset < 0x1100; ++offset) {
        for (const tracing::SourceFrame& frame : tracing::source_frames_at(path, offset)) {
            EXPECT_EQ(frame.is_library, tracing::is_library_at(path, offset));
            std::string function = frame.function + (frame.is_library ? "*" : "");
            if (functions.empty() || functions.back() != function)
                functions.push_back(std::move(function));
        }
    }
    return functions;
}

TEST(Calls, FunctionsAreFoundInScopesOfAnyLanguage) {
    EXPECT_THAT(functions_of(testdata("scopes")),
                ElementsAre("atomicLoad*", "in_union", "in_interface*", "in_class*", "in_structure",
                            "in_enumeration*", "in_namespace", "next", "load*", "next",
                            "==", "copyMem*", "wait", "begin__", "end__x64_9z", "read__u64_1",
                            "[]=", "..<", "tail=", "at", "eq_"));
}

// Frames of a damaged file may be wrong, but reading them must end without a crash.
TEST(Calls, DebugInformationOfAnyContentIsRead) {
    std::ifstream file(testdata("callers_O2"), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    ASSERT_GT(bytes.size(), 4096u);
    const char* folder = std::getenv("TEST_TMPDIR");
    const std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/tampered";
    std::mt19937_64 random(1);
    const char* variable = std::getenv("KMES_TAMPERED_FILES");
    const int files = variable != nullptr ? std::atoi(variable) : 100;
    for (int i = 0; i < files; ++i) {
        std::string tampered = bytes;
        // Keep the headers and the code of the file.
        for (int k = 0; k < 20; ++k)
            tampered[4096 + random() % (bytes.size() - 4096)] = static_cast<char>(random());
        std::filesystem::remove(path);
        std::ofstream(path, std::ios::binary) << tampered;
        for (std::uint64_t offset = 0x1000; offset < 0x1400; offset += 16)
            tracing::source_frames_at(path, offset);
    }
}

// -- the rule -------------------------------------------------------------------------------

CodeFrame frame(const std::string& function, const std::string& place) {
    CodeFrame made;
    made.function = function;
    made.place = made.id = place;
    made.has_source = true;
    return made;
}

CodeFrame accessor(const std::string& function, const std::string& place) {
    CodeFrame made = frame(function, place);
    made.is_short = made.takes_place = true;
    return made;
}

CodeFrame library(const std::string& function) {
    CodeFrame made = frame(function, "atomic:1");
    made.is_library = true;
    return made;
}

std::string shown(const std::vector<CodeFrame>& frames) {
    CodeFrame several;
    several.id = "several";
    AuthorsFrames authors;
    authors.add_access({several}, "write_pos");
    authors.add_access({several}, "tail_pos");
    return frame_text(frames, authors.of_access(frames));
}

TEST(AuthorsFrame, SkipsLibrariesAndAccessors) {
    EXPECT_EQ(shown({frame("drain", "r.c:1")}), "drain() r.c:1");
    EXPECT_EQ(shown({library("load"), frame("drain", "r.c:1")}), "drain() r.c:1 (via load)");
    EXPECT_EQ(shown({library("load"), accessor("get", "r.c:9"), frame("drain", "r.c:1")}),
              "drain() r.c:1 (via get)");
    EXPECT_EQ(shown({library("load"), accessor("get", "r.c:9"), library("call")}),
              "get() r.c:9 (via load)");
    EXPECT_EQ(shown({library("load"), library("call")}), "load() atomic:1");
}

TEST(AuthorsFrame, AShortFunctionIsNoAccessorForThatAlone) {
    CodeFrame is_replaced = frame("is_replaced", "r.c:9");
    is_replaced.is_short = true;
    EXPECT_EQ(shown({is_replaced, frame("drain", "r.c:1")}), "is_replaced() r.c:9");
    is_replaced.id = "several";
    EXPECT_EQ(shown({is_replaced, frame("drain", "r.c:1")}), "drain() r.c:1 (via is_replaced)");
    CodeFrame copy = frame("copy", "r.c:9");
    copy.takes_place = true;
    copy.id = "several";
    EXPECT_EQ(shown({copy, frame("drain", "r.c:1")}), "copy() r.c:9") << "it is long";
}

// It takes an object, so it is no accessor for an access.
CodeFrame thin(const std::string& function, const std::string& place) {
    CodeFrame made = frame(function, place);
    made.is_short = made.is_thin = true;
    made.body = function;
    return made;
}

TEST(AuthorsFrame, SkipsTheWrapperOfASystemCall) {
    const std::vector<CodeFrame> frames = {library("syscall"), thin("futex", "r.c:5"),
                                           thin("rest", "r.c:9"), frame("main", "r.c:20")};
    AuthorsFrames authors;
    EXPECT_EQ(frame_text(frames, authors.of_call(frames)), "rest() r.c:9 (via futex)")
        << "only one function makes the call";
    EXPECT_EQ(frame_text(frames, authors.of_access(frames)), "futex() r.c:5 (via syscall)");
    // It has the instruction of the call itself.
    const std::vector<CodeFrame> assembly = {thin("futex", "r.c:5"), frame("rest", "r.c:9")};
    EXPECT_EQ(frame_text(assembly, authors.of_call(assembly)), "rest() r.c:9 (via futex)");
    const std::vector<CodeFrame> alone = {library("syscall"), thin("futex", "r.c:5")};
    EXPECT_EQ(frame_text(alone, authors.of_call(alone)), "futex() r.c:5 (via syscall)");
}

TEST(AuthorsFrame, AWaitOfFewLinesIsNoWrapper) {
    const std::vector<CodeFrame> frames = {library("syscall"), thin("rest", "r.c:9"),
                                           frame("main", "r.c:20")};
    AuthorsFrames authors;
    authors.add_access({accessor("load", "r.c:2"), thin("rest", "r.c:7")}, "");
    EXPECT_EQ(frame_text(frames, authors.of_call(frames)), "rest() r.c:9 (via syscall)");
    CodeFrame longer = thin("wait", "r.c:9");
    longer.is_thin = false;
    const std::vector<CodeFrame> others = {library("syscall"), longer, frame("main", "r.c:20")};
    EXPECT_EQ(frame_text(others, authors.of_call(others)), "wait() r.c:9 (via syscall)");
}

TEST(AuthorsFrame, PrefersALineOfTheProgram) {
    CodeFrame no_source = frame("main", "main+0x12");
    no_source.has_source = false;
    EXPECT_EQ(shown({accessor("get", "r.c:9"), no_source}), "get() r.c:9");
    EXPECT_EQ(shown({library("memcpy"), no_source}), "main+0x12 (via memcpy)");
    EXPECT_EQ(shown({no_source}), "main+0x12");
    // As in a C library that is linked statically.
    CodeFrame copy = no_source;
    copy.function = "memcpy";
    EXPECT_EQ(shown({copy, frame("drain", "r.c:1")}), "drain() r.c:1 (via memcpy)");
}

}  // namespace
}  // namespace kmes::conformance
