// SPDX-License-Identifier: MIT
//
// The format: a printed script is read back unchanged. Every bad line is reported with its number,
// its mistake and the remedy.
#include "props/script/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace kmes::props {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kHeader = "kmes-script 1\n";

Script parsed(const std::string& text) {
    auto result = parse_script(text);
    if (const auto* error = std::get_if<ScriptError>(&result)) {
        ADD_FAILURE() << text << "\nline " << error->line << ": " << error->message;
        return {};
    }
    return std::get<Script>(result);
}

ScriptError refused(const std::string& text) {
    auto result = parse_script(text);
    if (const auto* error = std::get_if<ScriptError>(&result)) return *error;
    ADD_FAILURE() << "was read: " << text;
    return {};
}

// Returns the only operation of a script, for short tests.
Operation one(const std::string& line) {
    const Script script = parsed(kHeader + line + "\n");
    EXPECT_EQ(script.operations.size(), 1u) << line;
    return script.operations.empty() ? Operation() : script.operations[0];
}

TEST(Grammar, HasARuleForEachVerbInTheOrderOfTheEnumeration) {
    for (std::size_t i = 0; i < kVerbCount; i++) {
        EXPECT_EQ(static_cast<std::size_t>(rule_of(static_cast<Verb>(i)).verb), i);
    }
    EXPECT_EQ(rule_of(Verb::emit).name, "emit");
    EXPECT_EQ(rule_of(Verb::attach).name, "attach");
    EXPECT_EQ(name_of(Key::capacity), "capacity");
    EXPECT_EQ(name_of(Key::foreign), "foreign");
}

TEST(Grammar, HasStandardsInsideOfTheRangesAndAWordForEachValueOfAWordKey) {
    for (std::size_t i = 0; i < kVerbCount; i++) {
        for (const KeyRule& key : rule_of(static_cast<Verb>(i)).keys) {
            EXPECT_LE(key.minimum, key.standard) << name_of(key.key);
            EXPECT_LE(key.standard, key.maximum) << name_of(key.key);
            const std::size_t words = words_of(key.key).size();
            if (words > 0) {
                EXPECT_EQ(key.maximum + 1, words) << name_of(key.key);
            }
        }
    }
}

TEST(Grammar, GivesEveryKeyToSomeVerb) {
    for (std::size_t k = 0; k < kKeyCount; k++) {
        bool found = false;
        for (std::size_t i = 0; i < kVerbCount; i++) {
            found |= rule_of(static_cast<Verb>(i), static_cast<Key>(k)) != nullptr;
        }
        EXPECT_TRUE(found) << name_of(static_cast<Key>(k));
    }
}

TEST(Parse, ReadsAScriptWithEverythingThatALineCanHave) {
    const Script script = parsed(
        "\n# a script\n  kmes-script 1   # of this version\n"
        "settings position=0xFFffFFFF capacity=256 phase=boot guard=platform\n"
        "reader consumer=2 form=bulk sharing=shared\r\n"
        "\tstart emit payload=3 type=\"a b#\\x00\\\"\\\\\" # nested\n"
        "\n"
        "emit type=a.B-c_9 type_len=20#close\n"
        "step consumer=2 count=7");
    ASSERT_EQ(script.operations.size(), 5u);
    EXPECT_EQ(script.settings()[Key::position], 0xFFFFFFFFu);
    EXPECT_EQ(script.settings()[Key::capacity], 256u);
    EXPECT_EQ(script.settings()[Key::phase], 1u);
    EXPECT_EQ(script.settings()[Key::guard], 1u);
    EXPECT_EQ(script.settings()[Key::clock], 1000000000u);
    ASSERT_EQ(script.readers().size(), 1u);
    EXPECT_EQ(script.readers()[0][Key::form], 2u);
    EXPECT_EQ(script.first_operation(), 2u);
    EXPECT_TRUE(script.operations[2].is_started);
    EXPECT_EQ(script.operations[2].type, std::string("a b#\0\"\\", 7));
    EXPECT_EQ(full_type(script.operations[3]), "a.B-c_9a.B-c_9a.B-c_");
    EXPECT_EQ(script.operations[4][Key::count], 7u);
}

TEST(Parse, MeansTheStandardWhereNothingIsWritten) {
    const Script script = parsed(kHeader);
    EXPECT_TRUE(script.operations.empty());
    EXPECT_EQ(script.settings()[Key::capacity], 4096u);
    ASSERT_EQ(script.readers().size(), 1u);
    EXPECT_EQ(script.readers()[0][Key::consumer], 0u);
    EXPECT_EQ(script.readers()[0][Key::room], 4096u);
    EXPECT_EQ(one("emit").type, "t");
    EXPECT_EQ(one("emit")[Key::seed], 1u);
    EXPECT_EQ(one("fill")[Key::bytes], 4294967295u);
    EXPECT_EQ(one("emit type=\"\"").type, "");
    EXPECT_EQ(one("emit type=\"\xC3\xA9\"").type, "\xC3\xA9");
}

struct BadLine {
    std::string text;
    std::string wrong;
    std::string right;
};

TEST(Parse, SaysOfEveryBadLineWhatIsWrongAndWhatIsRight) {
    const std::string long_type(65, 'a');
    const std::vector<BadLine> bad = {
        {"emitt", "unknown verb 'emitt'", "settings reader emit"},
        {"emit payload", "'payload' has no value", "KEY=VALUE"},
        {"emit offset=1", "emit takes no key 'offset'", "payload type_len seed"},
        {"emit =1", "emit takes no key ''", "it takes: payload"},
        {"commit payload=1", "commit takes no key 'payload'", "it takes none"},
        {"batch type=t", "batch takes no key 'type'", "it takes none"},
        {"emit payload=1 payload=1", "'payload' occurs twice", "once"},
        {"emit type=a type=a", "'type' occurs twice", "once"},
        {"emit payload=", "payload='' is no number", "0 to 4294967295"},
        {"emit payload=-1", "payload='-1' is no number", "0 to 4294967295"},
        {"emit payload=0x", "payload='0x' is no number", "decimal or 0x"},
        {"emit payload=12a", "payload='12a' is no number", "decimal or 0x"},
        {"emit payload=1=2", "payload='1=2' is no number", "decimal or 0x"},
        {"emit payload=0x100000000", "out of range", "emit takes 0 to 4294967295"},
        {"emit payload=18446744073709551616", "is over 2^64 - 1", "0 to 4294967295"},
        {"emit extra=4097", "extra='4097' is out of range", "0 to 4096"},
        {"emit style=loud", "style='loud' is none of", "kernel call"},
        {"emit style=0", "style='0' is none of", "kernel call"},
        {"reserve style=call", "reserve takes no key 'style'", "it takes: payload"},
        {"emit type=", "type= has no value", "type=\"\""},
        {"emit type=a/b", "type='a/b' has more than letters", "put it between \""},
        {"emit type=\"a", "not ended", "\" ends it"},
        {"emit type=\"a\"b", "after the \"", "comes a blank"},
        {"emit type=\"\\n\"", "an escape", "\\xNN"},
        {"emit type=\"\\x1\"", "an escape", "two hexadecimal digits"},
        {"emit type=\"\\x", "an escape", "two hexadecimal digits"},
        {"emit type=\"\\", "an escape", "two hexadecimal digits"},
        {std::string("emit type=\"a\0\"", 14), "a control character", "\\xNN"},
        {"emit type=" + long_type, "longer than 64 bytes", "type_len="},
        {"emit type=\"" + long_type + "\"", "longer than 64 bytes", "type_len="},
        {"settings capacity=4095", "out of range", "a power of two from 256 to 16777216"},
        {"settings capacity=128", "out of range", "a power of two from 256 to 16777216"},
        {"resize capacity=33554432", "out of range", "a power of two from 256 to 16777216"},
        {"resize capacity=0", "out of range", "a power of two from 256 to 16777216"},
        {"settings position=18446739675663040513", "out of range", "to 18446739675663040512"},
        {"reader consumer=4", "out of range", "0 to 3"},
        {"reader room=63", "out of range", "64 to 1048576"},
        {"step count=0", "out of range", "1 to 100000"},
        {"poke offset=4096", "out of range", "0 to 4095"},
        {"poke value=256", "out of range", "0 to 255"},
        {"start", "start has no verb", "start VERB"},
        {"start step", "start 'step'", "only what the producer does"},
        {"start start emit", "start 'start'", "only what the producer does"},
        {"start reader", "start 'reader'", "only what the producer does"},
        {"\x01\xFF", "unknown verb '\\x01\\xff'", "one of"},
    };
    for (const BadLine& line : bad) {
        const ScriptError error = refused(kHeader + "\n# next\n" + line.text + "\nemit\n");
        EXPECT_EQ(error.line, 4u) << line.text;
        EXPECT_THAT(error.message, AllOf(HasSubstr(line.wrong), HasSubstr(line.right)))
            << line.text;
        EXPECT_EQ(error.message.find('\n'), std::string::npos) << line.text;
    }
}

TEST(Parse, RefusesAScriptWithoutTheFirstLineThatSaysWhatItIs) {
    EXPECT_EQ(refused("").line, 1u);
    EXPECT_THAT(refused("").message, AllOf(HasSubstr("empty"), HasSubstr("kmes-script 1")));
    EXPECT_EQ(refused("# nothing\n\n").line, 3u);
    EXPECT_EQ(refused("\nemit\n").line, 2u);
    EXPECT_THAT(refused("emit\n").message, AllOf(HasSubstr("'emit'"), HasSubstr("kmes-script 1")));
    EXPECT_THAT(refused("kmes-script\n").message, HasSubstr("without a version"));
    EXPECT_THAT(refused("kmes-script 2\n").message,
                AllOf(HasSubstr("version '2'"), HasSubstr("kmes-script 1")));
    EXPECT_THAT(refused("kmes-script 1 emit\n").message, HasSubstr("more than the version"));
    EXPECT_THAT(refused("kmes-script 1\nkmes-script 1\n").message, HasSubstr("unknown verb"));
}

TEST(Parse, RefusesSettingsAndReadersWhereTheyDoNotStandFirst) {
    const ScriptError late = refused(kHeader + "emit\nsettings\n");
    EXPECT_EQ(late.line, 3u);
    EXPECT_THAT(late.message, HasSubstr("settings stands once"));
    EXPECT_EQ(refused(kHeader + "settings\nsettings\n").line, 3u);
    EXPECT_EQ(refused(kHeader + "reader\nsettings\n").line, 3u);
    const ScriptError reader = refused(kHeader + "emit\nreader\n");
    EXPECT_EQ(reader.line, 3u);
    EXPECT_THAT(reader.message, HasSubstr("readers stand before"));
    const ScriptError twice = refused(kHeader + "reader consumer=1\nreader consumer=1\n");
    EXPECT_EQ(twice.line, 3u);
    EXPECT_THAT(twice.message, AllOf(HasSubstr("consumer=1"), HasSubstr("each consumer has one")));
}

TEST(Parse, TakesAsManyOperationsAsItSaysAndNotOneMore) {
    std::string text = kHeader;
    for (std::size_t i = 0; i < kMaxOperations; i++) text += "end\n";
    EXPECT_EQ(parsed(text).operations.size(), kMaxOperations);
    const ScriptError error = refused(text + "end\n");
    EXPECT_EQ(error.line, kMaxOperations + 2);
    EXPECT_THAT(error.message, HasSubstr("100000"));
}

TEST(Parse, ShowsOfALongWordOnlyItsBeginning) {
    EXPECT_LT(refused(kHeader + std::string(1000000, 'x')).message.size(), 400u);
}

TEST(Parse, AnswersAnyBytesAtAll) {
    std::mt19937_64 random(1);
    const std::string whole =
        kHeader +
        "settings capacity=256 phase=boot\nreader form=run\n"
        "start emit payload=0x10 type=\"a\\x00\\\"\"\nresize positions=zero\n";
    const auto draw = [&random](std::size_t below) { return random() % below; };
    int read = 0;
    for (int round = 0; round < 20000; round++) {
        std::string text = whole.substr(0, draw(whole.size() + 1));
        for (std::size_t i = draw(4); i > 0 && !text.empty(); i--) {
            text[draw(text.size())] = static_cast<char>(random());
        }
        if (draw(4) == 0) text.insert(draw(text.size() + 1), whole.substr(draw(whole.size())));
        const auto result = parse_script(text);
        if (const auto* error = std::get_if<ScriptError>(&result)) {
            ASSERT_GT(error->line, 0u);
            ASSERT_FALSE(error->message.empty());
            for (char c : error->message) ASSERT_TRUE(c >= 0x20 && c < 0x7F) << error->message;
        } else {
            const Script& script = std::get<Script>(result);
            ASSERT_EQ(parsed(print_script(script)), script);
            read++;
        }
    }
    EXPECT_GT(read, 100);
}

// Values of each key at its ends and in between.
std::vector<std::uint64_t> values_of(const KeyRule& rule) {
    if (rule.key == Key::capacity) return {256, 512, 4096, 16777216};
    return {rule.minimum, rule.maximum, rule.standard, rule.minimum / 2 + rule.maximum / 2};
}

TEST(Print, WritesWhatIsReadBackAsTheSameForEveryValueOfEveryKeyOfEveryVerb) {
    for (std::size_t i = 0; i < kVerbCount; i++) {
        const VerbRule& rule = rule_of(static_cast<Verb>(i));
        for (bool is_started : {false, true}) {
            if (is_started && rule.actor != Actor::producer) continue;
            Operation plain(rule.verb);
            plain.is_started = is_started;
            const std::string name = (is_started ? "start " : "") + std::string(rule.name);
            EXPECT_EQ(print_operation(plain), name);
            EXPECT_EQ(one(name), plain);
            Operation all = plain;
            for (const KeyRule& key : rule.keys) {
                for (std::uint64_t value : values_of(key)) {
                    Operation operation = plain;
                    operation.set(key.key, value);
                    all.set(key.key, value);
                    EXPECT_EQ(one(print_operation(operation)), operation);
                    EXPECT_EQ(one(print_operation(all)), all) << print_operation(all);
                }
            }
        }
    }
}

TEST(Print, WritesEveryTypeSoThatItIsReadBack) {
    for (int first = 0; first < 256; first++) {
        for (const char* rest : {"", "a", "\"", "\\", " "}) {
            Operation operation(Verb::add);
            operation.type = std::string(1, static_cast<char>(first)) + rest;
            EXPECT_EQ(one(print_operation(operation)), operation) << print_operation(operation);
        }
    }
    Operation empty(Verb::emit);
    empty.type = "";
    EXPECT_EQ(print_operation(empty), "emit type=\"\"");
    Operation plain(Verb::emit);
    plain.type = "a.B-c_9";
    EXPECT_EQ(print_operation(plain), "emit type=a.B-c_9");
    plain.type = std::string("a b\"\\\0\xFF", 7);
    EXPECT_EQ(print_operation(plain), "emit type=\"a b\\\"\\\\\\x00\\xff\"");
}

TEST(Print, LeavesOutWhatIsStandardAndWritesWords) {
    EXPECT_EQ(print_script(parsed(kHeader + "settings clock=1000000000 phase=rings cpu=3\n"
                                            "resize shift=0x10 positions=shift capacity=4096\n")),
              kHeader + "settings cpu=3\nresize positions=shift shift=16\n");
}

TEST(Type, IsRepeatedOrCutToItsLength) {
    Operation operation(Verb::emit);
    operation.type = "abc";
    EXPECT_EQ(full_type(operation), "abc");
    EXPECT_EQ(full_type(operation.set(Key::type_len, 2)), "ab");
    EXPECT_EQ(full_type(operation.set(Key::type_len, 7)), "abcabca");
    EXPECT_EQ(full_type(operation.set(Key::type_len, 65535)).size(), 65535u);
    operation.type = "";
    EXPECT_EQ(full_type(operation), "");
}

// The first words of splitmix64 from 0 and from 1234567, as its author's program prints them.
TEST(Payload, IsTheBytesOfSplitmix64LowestFirst) {
    const std::vector<std::uint64_t> words = {6457827717110365317u, 3203168211198807973u,
                                              9817491932198370423u, 4593380528125082431u};
    for (std::size_t i = 0; i < 32; i++) {
        EXPECT_EQ(payload_byte(1234567, i),
                  static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8))));
    }
    EXPECT_EQ(payload_byte(0, 0), 0xAF);  // 0xE220A8397B1DCDAF
    EXPECT_EQ(payload_byte(0, 7), 0xE2);
    for (std::size_t bytes : {0u, 1u, 7u, 8u, 9u, 100u}) {
        const std::string payload = payload_bytes(99, bytes);
        ASSERT_EQ(payload.size(), bytes);
        for (std::size_t i = 0; i < bytes; i++) {
            EXPECT_EQ(static_cast<std::uint8_t>(payload[i]), payload_byte(99, i));
        }
    }
}

}  // namespace
}  // namespace kmes::props
