// SPDX-License-Identifier: MIT
//
// The script format, version 1: what one CPU's producer, its consumers and the world around them
// do, one operation a line. docs/script-format.md says it for people; the table KMES_VERBS below is
// the grammar, for the parser, the printer, the generators, the mutators and the shrinker alike.
// Knows no core: whoever plays a script (props/machine, a kernel module's test, the conformance
// runner) includes this.
//
// The format is frozen: a later version has another number in its first line, and this one is read
// for ever.
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

// What stands before `=`. Every value is a number; of those that are written as words, the table in
// script.cc says which word is which number.
enum class Key : std::uint8_t {
    capacity,   // bytes of data of a buffer, a power of two
    position,   // of the first event (E11)
    sequence,   // the number that was given last
    clock,      // ns since the Unix epoch
    cpu,        //
    phase,      // rings (0) or boot (1): 5.1.2
    guard,      // core (0) or platform (1): who turns a nested emission away (E16)
    consumer,   // which one
    form,       // copy (0), place (1), bulk (2) or run (3): how a reader takes events
    sharing,    // exclusive (0) or shared (1): E12
    spin,       // looks before a sleep
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
    buffer,     // which one, 0 is the first of the script
    count,      // accesses
    forward,    // ns
    back,       // ns
    value,      // of a byte (poke), or an event_size (corrupt)
    event,      // which of the surviving events, 0 is the oldest
    refuse,     // attach calls that fail with EMFILE
    foreign,    // identify calls that answer another buffer
};
inline constexpr std::size_t kKeyCount = static_cast<std::size_t>(Key::foreign) + 1;

// One operation. Those of the producer can be preceded by `start`: they then stand before their
// first access to shared memory, and go on by `advance` and `finish`, or when the next such
// operation begins. What comes in between from the producer's side is an interrupt on its CPU
// (E16).
enum class Verb : std::uint8_t {
    settings,  // once, first: capacity position sequence clock cpu phase guard
    reader,    // before the first operation: consumer form sharing spin room stop
    // The producer.
    emit,      // payload type type_len seed origin style extra
    batch,     // opens one
    add,       // as emit, to the batch
    end,       // of the batch
    reserve,   // payload type type_len seed origin extra
    fill,      // offset bytes: of the payload that `seed` of the reserve says
    commit,    //
    abandon,   //
    handover,  // capacity positions shift: out of the boot phase (5.1.2)
    resize,    // capacity positions shift: all of a swap (5.1.8.4)
    prepare,   // capacity positions shift: a swap begins ...
    copy,      // ... one piece is copied ...
    change,    // ... and it is finished
    nudge,     // buffer: a retired one (E19)
    retire,    // the producer ends (E25)
    // The schedule.
    advance,    // count: accesses of the operation that was started
    finish,     // all that is left of it
    step,       // consumer count: accesses of a consumer
    run,        // consumer: until it sleeps
    restart,    // consumer: is closed, and a new one begins
    expire,     // consumer: the time limit of its sleep passes
    interrupt,  // consumer: its sleep is interrupted by a signal
    // The world.
    jump,     // forward back: the clock
    poke,     // buffer offset value: a hostile consumer writes one byte of the metadata page (E13)
    corrupt,  // event value: what no consumer can do: the event_size of a surviving event (E13)
    attach,   // refuse foreign: what the next calls of attach and identify answer
};
inline constexpr std::size_t kVerbCount = static_cast<std::size_t>(Verb::attach) + 1;

// Who carries an operation out.
enum class Actor : std::uint8_t { setting, producer, schedule, world };

struct KeyRule {
    Key key;
    std::uint64_t minimum;
    std::uint64_t maximum;
    std::uint64_t standard;  // what is meant where it is not written
};

struct VerbRule {
    Verb verb;
    std::string_view name;
    Actor actor;
    bool has_type;  // takes type=TEXT; the standard is "t"
    std::vector<KeyRule> keys;
};

// The grammar: one rule a verb, in the order of the enumeration.
const VerbRule& rule_of(Verb verb);
const KeyRule* rule_of(Verb verb, Key key);  // nullptr: this verb does not take it
std::string_view name_of(Key key);
// The words of a key whose values are written as words, the word of 0 first; empty for numbers.
const std::vector<std::string_view>& words_of(Key key);

struct Operation {
    Verb verb = Verb::finish;
    bool is_started = false;  // written `start VERB ...`; the producer's only
    std::array<std::uint64_t, kKeyCount> values{};
    std::string type;  // bytes, at most 64; may be empty (an error that is asked for)

    Operation() = default;
    // With the standard of every key.
    explicit Operation(Verb verb);

    std::uint64_t operator[](Key key) const { return values[static_cast<std::size_t>(key)]; }
    Operation& set(Key key, std::uint64_t value) {
        values[static_cast<std::size_t>(key)] = value;
        return *this;
    }
    bool operator==(const Operation&) const = default;
};

// The type as it is emitted: `type` repeated or cut to type_len bytes; as it stands where type_len
// is 0.
std::string full_type(const Operation& operation);

// Byte `index` of the payload of `seed`: the bytes, lowest first, of the words of a splitmix64
// generator that starts with `seed`.
std::uint8_t payload_byte(std::uint64_t seed, std::uint64_t index);
std::string payload_bytes(std::uint64_t seed, std::uint64_t bytes);

// Settings and readers stand first in `operations`, as in the file.
struct Script {
    std::vector<Operation> operations;
    bool operator==(const Script&) const = default;

    // The settings, or the standard ones.
    Operation settings() const;
    // The `reader` lines; where there is none, one standard reader as consumer 0.
    std::vector<Operation> readers() const;
    // What comes after settings and readers.
    std::size_t first_operation() const;
};

struct ScriptError {
    std::size_t line = 0;  // from 1
    std::string message;   // what is wrong, and what would be right
};

// The first line that says anything is kScriptHeader. The others are `[start] VERB [KEY=VALUE...]`,
// in any order of keys, each at most once; blank lines and `#` to the end of the line are passed
// over. Numbers are decimal or 0x. A type is bare ([A-Za-z0-9_.-]+) or quoted, with \xNN, \" and
// \\. Any bytes at all are answered with a script or an error; no limit but those of the table,
// kMaxTypeBytes and kMaxOperations.
inline constexpr std::size_t kMaxOperations = 100000;
std::variant<Script, ScriptError> parse_script(std::string_view text);

// What parse_script reads back as the same script. Keys that have their standard are left out.
std::string print_script(const Script& script);
std::string print_operation(const Operation& operation);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_SCRIPT_H_
