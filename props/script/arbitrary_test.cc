// SPDX-License-Identifier: MIT
//
// rapidcheck draws scripts, shrinks them, and says how to play the remaining one again.
#include "props/script/arbitrary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kmes::props {
namespace {

using testing::HasSubstr;

// A folder for failed scripts during a test.
class OutputFolder {
  public:
    explicit OutputFolder(const std::string& folder) {
        const char* before = std::getenv(kName);
        if (before != nullptr) before_ = before;
        setenv(kName, folder.c_str(), 1);
    }
    ~OutputFolder() {
        if (before_) {
            setenv(kName, before_->c_str(), 1);
        } else {
            unsetenv(kName);
        }
    }
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;

  private:
    static constexpr const char* kName = "TEST_UNDECLARED_OUTPUTS_DIR";
    std::optional<std::string> before_;
};

std::string new_folder() {
    std::string name = testing::TempDir() + "/kmes-arbitrary-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
}

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// A mistake that two lines show: a nudge after a non-empty batch.
bool fails(const Script& script) {
    bool seen = false;
    for (const Operation& operation : script.operations) {
        seen |= operation.verb == Verb::add && operation[Key::payload] >= 20;
        if (operation.verb == Verb::nudge && seen) return true;
    }
    return false;
}

RC_GTEST_PROP(Arbitrary, DrawsScriptsThatAreReadBack, ()) {
    const Profile profile = static_cast<Profile>(*rc::gen::inRange<int>(0, kProfileCount));
    const Script script = *scripts(profile);
    const auto again = parse_script(print_script(script));
    RC_ASSERT(std::holds_alternative<Script>(again));
    RC_ASSERT(std::get<Script>(again) == script);
}

TEST(Arbitrary, ShrinksAFailureToTheLinesThatMatter) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 200; seed++) {
        rc::Shrinkable<Script> current = scripts(Profile::anything)(rc::Random(seed), 60);
        if (!fails(current.value())) continue;
        found++;
        for (bool smaller = true; smaller;) {
            smaller = false;
            for (auto shrinks = current.shrinks(); auto next = shrinks.next();) {
                if (!fails(next->value())) continue;
                current = *next;
                smaller = true;
                break;
            }
        }
        EXPECT_EQ(print_script(current.value()), "kmes-script 1\nadd payload=20\nnudge\n");
    }
    EXPECT_GT(found, 10);
}

TEST(Arbitrary, IsShownByRapidcheckAsTextThatIsKept) {
    const std::string folder = new_folder();
    const OutputFolder output(folder);
    std::ostringstream shown;
    Script script;
    script.operations.emplace_back(Verb::emit).set(Key::payload, 7);
    rc::show(script, shown);
    EXPECT_THAT(shown.str(),
                HasSubstr("kmes-script 1\nemit payload=7\nreplay it: tools/kmes replay " + folder +
                          "/failed-"));
    const std::string path = save_failed_script(script, "failed");
    EXPECT_THAT(shown.str(), HasSubstr("replay " + path + "\n"));
    EXPECT_EQ(content_of(path), print_script(script));
    std::filesystem::remove_all(folder);
}

TEST(Arbitrary, IsShownAlsoWhereNothingCanBeKept) {
    Script script;
    script.operations.emplace_back(Verb::retire);
    for (const std::string& folder : {std::string(), std::string("/dev/null/none")}) {
        const OutputFolder output(folder);
        EXPECT_EQ(save_failed_script(script, "failed"), "");
        EXPECT_EQ(failed_script_text(script, "failed"),
                  "kmes-script 1\nretire\n"
                  "replay it: tools/kmes replay FILE, with the lines above in FILE\n");
    }
}

}  // namespace
}  // namespace kmes::props
