// SPDX-License-Identifier: MIT
//
// See schedule.h. A scenario is itself a script; the bytes begin its producer lines one by one.
#include "fuzz/targets/schedule.h"

#include <iterator>
#include <string_view>
#include <variant>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/playing.h"
#include "props/script/script.h"

namespace kmes::fuzz {
namespace {

using props::Actor;
using props::Key;
using props::Operation;
using props::Verb;

constexpr std::size_t kMostLines = 300;

// Append only: the first byte of a saved input is the number.
constexpr std::string_view kScenarios[] = {
    // A lap around one reader.
    "emit payload=70\nemit payload=40 seed=1\nemit payload=97 seed=2\nemit payload=98 seed=3\n"
    "emit seed=4\nemit payload=60 seed=5\n",
    "reader form=place\nemit payload=98\nemit payload=98 seed=1\nemit payload=98 seed=2\n"
    "emit payload=98 seed=3\n",
    "reader form=bulk\nemit\nemit seed=1\nemit seed=2\nemit payload=98 seed=3\n"
    "emit payload=98 seed=4\nemit payload=33 seed=5\nemit payload=98 seed=6\n",
    // Sleep and wake.
    "reader form=run spin=1\nemit payload=10\nemit payload=20 seed=1\nemit payload=30 seed=2\n",
    "settings position=18446739675663040000\nreader spin=0\nbatch\nadd payload=50\n"
    "add payload=97 seed=1\nadd payload=97 seed=2\nend\nemit seed=3\n",
    // A resize while a reader sleeps or reads.
    "emit payload=60\nresize capacity=512\nemit payload=200 seed=1\nresize capacity=256\n"
    "emit payload=60 seed=2\nnudge buffer=0\n",
    "reader form=bulk\nemit payload=60\nemit payload=60 seed=1\nprepare capacity=256\ncopy\n"
    "emit payload=90 seed=2\nchange\nemit payload=90 seed=3\nnudge buffer=0\nnudge buffer=1\n",
    "reader\nemit payload=60\nemit payload=60 seed=1\nresize capacity=256 positions=zero\n"
    "resize capacity=256 positions=shift shift=777\nemit payload=90 seed=3\nretire\n",
    // Boot.
    "settings phase=boot\nemit\nemit payload=60 seed=1\nhandover capacity=512\nemit seed=2\n"
    "retire\nretire\n",
    // Two and three readers that share (E12).
    "reader consumer=0 sharing=shared\nreader consumer=1 sharing=shared form=place\nemit\n"
    "emit payload=90 seed=1\nemit payload=90 seed=2\nresize capacity=256\nemit seed=3\n",
    "reader consumer=0 sharing=shared\nreader consumer=1 sharing=shared spin=2\n"
    "reader consumer=2 sharing=shared form=bulk\nemit\nbatch\nadd seed=1\nadd seed=2\nend\n"
    "retire\n",
    // Interrupts: operations that begin inside of another one (E16).
    "emit payload=98\nreserve payload=98 seed=1\nemit seed=2\nfill bytes=10\ncommit\n"
    "reserve payload=98 seed=3\nabandon\nemit payload=98 seed=4\n",
    "settings guard=platform\nbatch\nadd payload=90\nemit payload=90 seed=1\nadd payload=90 "
    "seed=2\n"
    "resize capacity=512\nadd payload=90 seed=3\nend\n",
    // A hostile consumer (E13), and a clock that jumps.
    "emit payload=98\npoke offset=132 value=1\nemit seed=1\npoke offset=72 value=255\n"
    "emit payload=98 seed=2\npoke offset=64 value=255\njump back=1000000\nemit payload=98 seed=3\n",
};

props::Script parse_scenario(std::string_view text) {
    const auto parsed =
        props::parse_script(std::string(props::kScriptHeader) + "\n" + std::string(text));
    if (const auto* error = std::get_if<props::ScriptError>(&parsed))
        fail("a scenario is no script: line " + std::to_string(error->line) + ": " +
             error->message);
    return std::get<props::Script>(parsed);
}

const std::vector<props::Script>& scenarios() {
    static const auto* const all = [] {
        auto* parsed = new std::vector<props::Script>;
        for (const std::string_view text : kScenarios) parsed->push_back(parse_scenario(text));
        return parsed;
    }();
    return *all;
}

props::Script decode(FuzzedBytes& bytes) {
    const props::Script& scenario = scenarios()[bytes.below(scenarios().size())];
    std::size_t next = scenario.first_operation();
    props::Script script;
    script.operations.assign(scenario.operations.begin(),
                             scenario.operations.begin() + static_cast<std::ptrdiff_t>(next));
    const std::vector<Operation> readers = scenario.readers();
    const auto begin_next = [&](bool is_started) {
        Operation operation = scenario.operations[next++];
        operation.is_started =
            is_started && props::rule_of(operation.verb).actor == Actor::producer;
        script.operations.push_back(operation);
    };
    while (!bytes.empty() && script.operations.size() < kMostLines) {
        const std::uint64_t drawn = bytes.below(256);
        if (drawn % 4 <= 1) {
            script.operations.push_back(Operation(Verb::advance).set(Key::count, drawn / 4 + 1));
        } else if (drawn % 4 == 2) {
            const Operation& reader = readers[drawn / 4 % readers.size()];
            const std::uint64_t count = 1 + drawn / 4 / readers.size();
            script.operations.push_back(Operation(Verb::step)
                                            .set(Key::consumer, reader[Key::consumer])
                                            .set(Key::count, count));
        } else if (next < scenario.operations.size()) {
            begin_next(true);
        }
    }
    // Runs every operation to its end, and every consumer until it sleeps.
    script.operations.push_back(Operation(Verb::finish));
    while (next < scenario.operations.size()) begin_next(false);
    for (const Operation& reader : readers)
        script.operations.push_back(Operation(Verb::run).set(Key::consumer, reader[Key::consumer]));
    return script;
}

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_schedule(const std::uint8_t* data, std::size_t size) {
    kmes::fuzz::FuzzedBytes bytes(data, size);
    kmes::fuzz::play_or_abort(kmes::fuzz::decode(bytes));
    return 0;
}
