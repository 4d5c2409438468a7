// SPDX-License-Identifier: MIT
//
// The script format, version 1: the actions of one CPU's producer, its consumers and their
// environment, one operation a line. docs/script-format.md describes it for people. The table
// KMES_VERBS below is the grammar for the parser, the printer, the generators, the mutators and the
// shrinker. Knows no core. All players of scripts include it (props/machine, a kernel module's
// test, the conformance runner).
//
// The format is frozen: a later version will have another number in its first line, and this one
// stays readable.
#ifndef KMES_PROPS_SCRIPT_SCRIPT_H_
#define KMES_PROPS_SCRIPT_SCRIPT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kmes::props {

inline constexpr std::string_view kScriptHeader = "kmes-script 1";
inline constexpr unsigned kMaxConsumers = 4;
inline constexpr std::string_view kStandardType = "t";
inline constexpr std::size_t kMaxTypeBytes = 64;

// The word before `=`. Every value is a number. For values that are written as words, the table in
// script.cc maps words to numbers.
enum class Key : std::uint8_t {
    capacity,   // bytes of data of a buffer, a power of two
    position,   // of the first event (E11)
    sequence,   // the last assigned number
    clock,      // ns since the Unix epoch
    cpu,        //
    phase,      // rings (0) or boot (1): 5.1.2
    guard,      // core (0) or platform (1): the part that rejects a nested emission (E16)
    consumer,   // its number
    form,       // copy (0), place (1), bulk (2) or run (3): how a reader takes events
    sharing,    // exclusive (0) or shared (1): E12
    spin,       // checks before a sleep
    room,       // bytes that a reader has for one read
    stop,       // 1: corrupt content ends the reader (E7)
    payload,    // bytes
    type_len,   // bytes; the text of the type is repeated or cut to it
    seed,       // of the payload: payload_byte
    origin,     // origin_class
    style,      // kernel (0) or call (1): 5.1.7 step 5, or an error to the caller
    extra,      // bytes of zeros between type and payload, as a later version may have
    offset,     // in the payload (fill), or in the metadata page (poke)
    bytes,      //
    positions,  // keep (0), zero (1) or shift (2): E11
    shift,      // bytes, for positions=shift
    buffer,     // its number; 0 is the first of the script
    count,      // accesses
    forward,    // ns
    back,       // ns
    value,      // of a byte (poke), or an event_size (corrupt)
    event,      // index of a surviving event; 0 is the oldest
    refuse,     // attach calls that fail with EMFILE
    foreign,    // identify calls that answer another buffer
};
inline constexpr std::size_t kKeyCount = static_cast<std::size_t>(Key::foreign) + 1;

// One operation. `start` can precede those of the producer: they then pause before their first
// access to shared memory. They continue by `advance` and `finish`, or when the next such operation
// begins. Anything of the producer in between is an interrupt on its CPU (E16).
enum class Verb : std::uint8_t {
    settings,  // once, first: capacity position sequence clock cpu phase guard
    reader,    // before the first operation: consumer form sharing spin room stop
    // The producer.
    emit,      // payload type type_len seed origin style extra
    batch,     // opens one
    add,       // as emit, to the batch
    end,       // of the batch
    reserve,   // payload type type_len seed origin extra
    fill,      // offset bytes: of the payload that the `seed` of the reserve defines
    commit,    //
    abandon,   //
    handover,  // capacity positions shift: ends the boot phase (5.1.2)
    resize,    // capacity positions shift: a whole swap (5.1.8.4)
    prepare,   // capacity positions shift: a swap begins ...
    copy,      // ... one piece is copied ...
    change,    // ... and it is finished
    nudge,     // buffer: a retired one (E19)
    retire,    // the producer ends (E25)
    // The schedule.
    advance,    // count: accesses of the started operation
    finish,     // the rest of it
    step,       // consumer count: accesses of a consumer
    run,        // consumer: until it sleeps
    restart,    // consumer: it is closed, and a new one begins
    expire,     // consumer: the timeout of its sleep passes
    interrupt,  // consumer: its sleep is interrupted by a signal
    // The world.
    jump,     // forward back: the clock
    poke,     // buffer offset value: a hostile consumer writes one byte of the metadata page (E13)
    corrupt,  // event value: the event_size of a surviving event, which no consumer can change
              // (E13)
    attach,   // refuse foreign: the answers of the next calls of attach and identify
};
inline constexpr std::size_t kVerbCount = static_cast<std::size_t>(Verb::attach) + 1;

// The actor that executes an operation.
enum class Actor : std::uint8_t { setting, producer, schedule, world };

struct KeyRule {
    Key key;
    std::uint64_t minimum;
    std::uint64_t maximum;
    std::uint64_t standard;  // the default
};

struct VerbRule {
    Verb verb;
    std::string_view name;
    Actor actor;
    bool has_type;  // takes type=TEXT; the default is "t"
    std::vector<KeyRule> keys;
};

// The grammar: one rule for each verb, in the order of the enumeration.
const VerbRule& rule_of(Verb verb);
const KeyRule* rule_of(Verb verb, Key key);  // nullptr: this verb does not take the key
std::string_view name_of(Key key);
// The words for the values of a key, the word of 0 first; empty if they are written as numbers.
const std::vector<std::string_view>& words_of(Key key);

struct Operation {
    Verb verb = Verb::finish;
    bool is_started = false;  // written `start VERB ...`; only for the producer
    std::array<std::uint64_t, kKeyCount> values{};
    std::string type;  // bytes, at most 64; may be empty (an intended error)

    Operation() = default;
    // Every key has its default.
    explicit Operation(Verb verb);

    std::uint64_t operator[](Key key) const { return values[static_cast<std::size_t>(key)]; }
    Operation& set(Key key, std::uint64_t value) {
        values[static_cast<std::size_t>(key)] = value;
        return *this;
    }
    bool operator==(const Operation&) const = default;
};

// Returns the emitted type: `type` repeated or cut to type_len bytes, or unchanged if type_len is
// 0.
std::string full_type(const Operation& operation);

// Returns byte `index` of the payload of `seed`: the bytes of the words of a splitmix64 generator
// that starts with `seed`, lowest byte first.
std::uint8_t payload_byte(std::uint64_t seed, std::uint64_t index);
std::string payload_bytes(std::uint64_t seed, std::uint64_t bytes);

// Settings and readers come first in `operations`, as in the file.
struct Script {
    std::vector<Operation> operations;
    bool operator==(const Script&) const = default;

    // The settings, or the default ones.
    Operation settings() const;
    // The `reader` lines; without any, one default reader as consumer 0.
    std::vector<Operation> readers() const;
    // The index of the first operation after settings and readers.
    std::size_t first_operation() const;
};

struct ScriptError {
    std::size_t line = 0;  // from 1
    std::string message;   // the mistake, and its remedy
};

// Reads a script. The first line with content is kScriptHeader. The others are `[start] VERB
// [KEY=VALUE...]`, with the keys in any order, each at most once. Blank lines, and `#` to the end
// of a line, are skipped. Numbers are decimal or 0x. A type is bare ([A-Za-z0-9_.-]+) or quoted,
// with \xNN, \" and \\. Any bytes give a script or an error. The only limits are those of the
// table, kMaxTypeBytes and kMaxOperations.
inline constexpr std::size_t kMaxOperations = 100000;
std::variant<Script, ScriptError> parse_script(std::string_view text);

// Returns a text from which parse_script reads an equal script. Keys with their default are left
// out.
std::string print_script(const Script& script);
std::string print_operation(const Operation& operation);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_SCRIPT_H_
