// SPDX-License-Identifier: MIT
//
// Drawn scripts are valid, the same for the same seed, and at the intended edges. Each edge is
// counted with a separate outline.
#include "props/script/generate.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace kmes::props {
namespace {

constexpr Profile kProfiles[] = {Profile::anything,  Profile::resizes, Profile::hostile,
                                 Profile::schedules, Profile::batches, Profile::readers};
static_assert(std::size(kProfiles) == kProfileCount);

Operation emit(std::uint64_t bytes) {
    return Operation(Verb::emit).set(Key::payload, bytes - 30);
}
Operation to(Verb verb, std::uint64_t capacity) {
    return Operation(verb).set(Key::capacity, capacity);
}

Script small_ring() {
    Script script;
    script.operations.push_back(to(Verb::settings, 256).set(Key::position, 1000));
    return script;
}

std::vector<std::uint64_t> sizes(const Outline& outline) {
    return {outline.events().begin(), outline.events().end()};
}

TEST(Outline, KnowsTheSizeOfAnEvent) {
    Operation event(Verb::emit);
    EXPECT_EQ(event_bytes(event), 30u);
    event.type = "abc";
    EXPECT_EQ(event_bytes(event.set(Key::payload, 5).set(Key::extra, 7)), 29u + 3 + 7 + 5);
    EXPECT_EQ(event_bytes(event.set(Key::type_len, 100)), 29u + 100 + 7 + 5);
}

TEST(Outline, KeepsTheNewestEventsThatFit) {
    Outline outline(small_ring());
    EXPECT_EQ(outline.until_wrap(), 24u);  // 1000 % 256 is 232
    for (std::uint64_t bytes : {100, 100, 56}) outline.follow(emit(bytes));
    EXPECT_EQ(outline.room(), 0u);
    outline.follow(emit(129));  // over 50 %: dropped
    EXPECT_EQ(outline.write(), 1256u);
    outline.follow(emit(30));
    EXPECT_EQ(sizes(outline), (std::vector<std::uint64_t>{100, 56, 30}));
    EXPECT_EQ(outline.room(), 70u);
    EXPECT_EQ(outline.write(), 1286u);
    outline.follow(emit(70));
    outline.follow(emit(101));
    EXPECT_EQ(sizes(outline), (std::vector<std::uint64_t>{30, 70, 101}));
}

TEST(Outline, FollowsBatchesReservationsAndSwaps) {
    Outline outline(small_ring());
    outline.follow(Operation(Verb::add));  // no batch
    EXPECT_EQ(outline.used(), 0u);
    outline.follow(Operation(Verb::batch));
    outline.follow(Operation(Verb::add));
    outline.follow(Operation(Verb::end));
    EXPECT_EQ(outline.used(), 30u);
    outline.follow(Operation(Verb::reserve).set(Key::payload, 70));
    EXPECT_TRUE(outline.has_reservation());
    outline.follow(emit(30));  // an interrupt: turned away
    EXPECT_EQ(outline.used(), 30u);
    outline.follow(Operation(Verb::commit));
    EXPECT_EQ(outline.used(), 130u);
    outline.follow(to(Verb::resize, 512).set(Key::positions, 1));
    EXPECT_EQ(outline.write(), 130u);
    EXPECT_EQ(outline.buffers(), 2u);
    outline.follow(emit(200));
    outline.follow(to(Verb::prepare, 256).set(Key::positions, 2).set(Key::shift, 1000));
    outline.follow(to(Verb::resize, 4096));  // while one is prepared: skipped
    outline.follow(Operation(Verb::change));
    EXPECT_EQ(outline.capacity(), 256u);
    EXPECT_EQ(sizes(outline), (std::vector<std::uint64_t>{200}));
    EXPECT_EQ(outline.write(), 1330u);
    outline.follow(Operation(Verb::retire));
    outline.follow(emit(30));
    EXPECT_EQ(outline.used(), 200u);
}

TEST(Generate, MakesTheSameScriptOfTheSameSeed) {
    for (Profile profile : kProfiles) {
        std::set<std::string> texts;
        for (std::uint64_t seed = 0; seed < 50; seed++) {
            const Script script = generate(seed, 30, profile);
            EXPECT_EQ(script, generate(seed, 30, profile));
            texts.insert(print_script(script));
        }
        EXPECT_EQ(texts.size(), 50u);
    }
}

TEST(Generate, MakesScriptsThatAreReadBackAndAsLongAsWasAsked) {
    for (Profile profile : kProfiles) {
        for (std::uint64_t seed = 0; seed < 150; seed++) {
            const std::size_t size = seed % 100;
            const Script script = generate(seed, size, profile);
            const auto again = parse_script(print_script(script));
            const auto* error = std::get_if<ScriptError>(&again);
            ASSERT_EQ(error, nullptr) << error->line << ": " << error->message << "\n"
                                      << print_script(script);
            ASSERT_EQ(std::get<Script>(again), script) << print_script(script);
            const std::size_t operations = script.operations.size() - script.first_operation();
            EXPECT_GE(operations, size);
            EXPECT_LE(operations, size + 120);
        }
    }
    const Script longest = generate(1, 5000, Profile::resizes);
    EXPECT_TRUE(std::holds_alternative<Script>(parse_script(print_script(longest))));
}

// E12: two exclusive readers of one buffer, or one of each, may lose a wake-up.
TEST(Generate, SharesABufferOnlyBetweenReadersThatAgree) {
    std::map<std::size_t, int> counts;
    std::set<std::uint64_t> forms;
    for (Profile profile : kProfiles) {
        for (std::uint64_t seed = 0; seed < 100; seed++) {
            const std::vector<Operation> readers = generate(seed, 0, profile).readers();
            counts[readers.size()]++;
            for (const Operation& reader : readers) {
                forms.insert(reader[Key::form]);
                EXPECT_EQ(reader[Key::sharing], readers.size() > 1 ? 1u : 0u);
            }
        }
    }
    for (std::size_t count = 1; count <= kMaxConsumers; count++) EXPECT_GT(counts[count], 20);
    EXPECT_EQ(forms.size(), 4u);
}

TEST(Generate, UsesEveryVerbInEveryProfileAndEveryKey) {
    std::set<std::pair<Verb, Key>> keys;
    for (Profile profile : kProfiles) {
        std::set<Verb> verbs;
        for (std::uint64_t seed = 0; seed < 400; seed++) {
            for (const Operation& operation : generate(seed, 60, profile).operations) {
                verbs.insert(operation.verb);
                for (const KeyRule& rule : rule_of(operation.verb).keys) {
                    if (operation[rule.key] != rule.standard)
                        keys.insert({operation.verb, rule.key});
                }
            }
        }
        EXPECT_GE(verbs.size(), kVerbCount - (profile == Profile::schedules ? 1 : 0));
    }
    for (std::size_t i = 0; i < kVerbCount; i++) {
        const VerbRule& verb = rule_of(static_cast<Verb>(i));
        for (const KeyRule& rule : verb.keys) {
            EXPECT_TRUE(keys.count({verb.verb, rule.key})) << verb.name << " " << name_of(rule.key);
        }
    }
}

// The percentage of operations with one of these verbs.
double share(Profile profile, const std::set<Verb>& verbs) {
    std::size_t all = 0, found = 0;
    for (std::uint64_t seed = 0; seed < 200; seed++) {
        const Script script = generate(seed, 60, profile);
        for (const Operation& operation : script.operations) found += verbs.count(operation.verb);
        all += script.operations.size();
    }
    return 100.0 * static_cast<double>(found) / static_cast<double>(all);
}

TEST(Generate, FavoursWhatTheProfileIsNamedFor) {
    const std::map<Profile, std::set<Verb>> named = {
        {Profile::resizes, {Verb::resize, Verb::prepare, Verb::copy, Verb::change}},
        {Profile::hostile, {Verb::poke, Verb::corrupt}},
        {Profile::schedules, {Verb::step, Verb::advance, Verb::finish}},
        {Profile::batches, {Verb::batch, Verb::add, Verb::end}},
        {Profile::readers, {Verb::run, Verb::restart, Verb::attach, Verb::expire}},
    };
    for (const auto& [profile, verbs] : named) {
        EXPECT_GT(share(profile, verbs), 1.25 * share(Profile::anything, verbs))
            << print_script(generate(1, 30, profile));
    }
}

// Edges of the ring that random sizes would rarely reach.
struct Edges {
    int exact_fill = 0, exactly_half = 0, just_over_half = 0, frees_one = 0, ends_at_wrap = 0;
    int header_over_wrap = 0, over_half_of_shrunken = 0, fills_shrunken = 0, long_tiny_run = 0;
    int nested_while_started = 0, nested_while_reserved = 0, emitted_while_prepared = 0;
    int poked_while_started = 0;
};

void count_event(const Outline& outline, std::uint64_t bytes, Edges& edges) {
    edges.exactly_half += bytes == outline.half();
    edges.just_over_half += bytes == outline.half() + 1;
    if (bytes > outline.half()) return;
    edges.exact_fill += bytes == outline.room();
    edges.ends_at_wrap += bytes == outline.until_wrap();
    const std::uint64_t left = outline.until_wrap() - bytes;
    edges.header_over_wrap += left > 0 && left < 29;
    const std::uint64_t front = outline.events().empty() ? 0 : outline.events().front();
    edges.frees_one += bytes == outline.room() + front && front > 0;
    edges.emitted_while_prepared += outline.has_prepared();
}

void count_edges(const Script& script, Edges& edges) {
    Outline outline(script);
    int tiny = 0;
    bool large_before = false;
    for (const Operation& operation : script.operations) {
        const bool is_event = rule_of(operation.verb, Key::payload) != nullptr;
        const std::uint64_t bytes = is_event ? event_bytes(operation) : 0;
        if (is_event && !operation.is_started) {
            edges.nested_while_started += outline.is_started();
            edges.nested_while_reserved += outline.has_reservation();
        }
        edges.poked_while_started += operation.verb == Verb::poke && outline.is_started();
        if (is_event && !outline.is_started() && !outline.has_reservation()) {
            count_event(outline, bytes, edges);
            tiny = bytes <= 33 ? tiny + 1 : 0;
            if (bytes > outline.capacity() / 4) large_before = true;
            edges.long_tiny_run += tiny == 6 && large_before;
        }
        outline.follow(operation);
        if (operation.verb == Verb::resize && !outline.events().empty()) {
            edges.over_half_of_shrunken += outline.events().back() > outline.half();
            edges.fills_shrunken += outline.events().back() == outline.capacity();
        }
    }
}

TEST(Generate, StandsAtTheEdgesWhereBugsLive) {
    Edges edges;
    for (std::uint64_t seed = 0; seed < 300; seed++) {
        count_edges(generate(seed, 60, Profile::anything), edges);
    }
    EXPECT_GT(edges.exact_fill, 100);
    EXPECT_GT(edges.exactly_half, 100);
    EXPECT_GT(edges.just_over_half, 50);
    EXPECT_GT(edges.frees_one, 100);
    EXPECT_GT(edges.ends_at_wrap, 50);
    EXPECT_GT(edges.header_over_wrap, 100);
    EXPECT_GT(edges.over_half_of_shrunken, 50);
    EXPECT_GT(edges.fills_shrunken, 20);
    EXPECT_GT(edges.long_tiny_run, 100);
    EXPECT_GT(edges.nested_while_started, 100);
    EXPECT_GT(edges.nested_while_reserved, 50);
    EXPECT_GT(edges.emitted_while_prepared, 100);
    EXPECT_GT(edges.poked_while_started, 20);
}

TEST(Generate, StartsPositionsWhereverTheyMayBegin) {
    int zero = 0, at_32 = 0, at_63 = 0, highest = 0;
    const std::uint64_t maximum = rule_of(Verb::settings, Key::position)->maximum;
    for (std::uint64_t seed = 0; seed < 400; seed++) {
        const std::uint64_t position =
            generate(seed, 0, Profile::anything).settings()[Key::position];
        zero += position == 0;
        at_32 += position <= 1ull << 32 && position > (1ull << 32) - 600;
        at_63 += position <= 1ull << 63 && position > (1ull << 63) - 600;
        highest += position > maximum - 600;
    }
    EXPECT_GT(zero, 20);
    EXPECT_GT(at_32, 20);
    EXPECT_GT(at_63, 20);
    EXPECT_GT(highest, 20);
}

// Bursts instead of coin flips: the last consumer usually continues.
TEST(Generate, KeepsToOneConsumerForAWhile) {
    int same = 0, other = 0;
    for (std::uint64_t seed = 0; seed < 300; seed++) {
        const Script script = generate(seed, 60, Profile::schedules);
        if (script.readers().size() < 2) continue;
        std::optional<std::uint64_t> last;
        for (const Operation& operation : script.operations) {
            if (operation.verb != Verb::step && operation.verb != Verb::run) continue;
            if (last) (*last == operation[Key::consumer] ? same : other)++;
            last = operation[Key::consumer];
        }
    }
    EXPECT_GT(same, 3 * other);
    EXPECT_GT(other, 100);
}

}  // namespace
}  // namespace kmes::props
