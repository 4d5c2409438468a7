// SPDX-License-Identifier: MIT
//
// The grammar of the script format as tables, and the meaning of a script apart from its text:
// defaults, types, payloads. Knows no core, and nothing of how a script is played.
#include "props/script/script.h"

#include <algorithm>

#include "props/script/form.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kMax64 = ~0ull;
constexpr std::uint64_t kMax32 = 0xFFFFFFFFull;
constexpr std::uint64_t kMaxCapacity = 16ull << 20;

// Rules of keys that mean the same for every verb.
constexpr KeyRule kCapacity{Key::capacity, 256, kMaxCapacity, 4096};
constexpr KeyRule kConsumer{Key::consumer, 0, kMaxConsumers - 1, 0};
constexpr KeyRule kPayload{Key::payload, 0, kMax32, 0};
constexpr KeyRule kTypeLen{Key::type_len, 0, 65535, 0};
constexpr KeyRule kSeed{Key::seed, 0, kMax64, 1};
constexpr KeyRule kOrigin{Key::origin, 0, 255, 0};
constexpr KeyRule kStyle{Key::style, 0, 1, 0};
constexpr KeyRule kExtra{Key::extra, 0, 4096, 0};
constexpr KeyRule kPositions{Key::positions, 0, 2, 0};
constexpr KeyRule kShift{Key::shift, 0, 1ull << 40, 0};
constexpr KeyRule kBuffer{Key::buffer, 0, 1000, 0};
constexpr KeyRule kCount{Key::count, 1, 100000, 1};

const std::vector<KeyRule>& settings_keys() {
    static const std::vector<KeyRule> keys = {
        kCapacity,
        // So far from the end that no script reaches it: positions never wrap (5.1.6.2).
        {Key::position, 0, kMax64 - (1ull << 42) + 1, 0},
        {Key::sequence, 0, 1ull << 63, 0},
        {Key::clock, 0, 1ull << 63, 1000000000},
        {Key::cpu, 0, 65535, 0},
        {Key::phase, 0, 1, 0},
        {Key::guard, 0, 1, 0},
    };
    return keys;
}

const std::vector<KeyRule>& reader_keys() {
    static const std::vector<KeyRule> keys = {
        kConsumer,
        {Key::form, 0, 3, 0},
        {Key::sharing, 0, 1, 0},
        {Key::spin, 0, 16, 0},
        {Key::room, 64, 1ull << 20, 4096},
        {Key::stop, 0, 1, 0},
    };
    return keys;
}

std::vector<VerbRule> make_rules() {
    const std::vector<KeyRule> event = {kPayload, kTypeLen, kSeed, kOrigin, kStyle, kExtra};
    const std::vector<KeyRule> swap = {kCapacity, kPositions, kShift};
    const std::vector<KeyRule> consumer = {kConsumer};
    return {
        {Verb::settings, "settings", Actor::setting, false, settings_keys()},
        {Verb::reader, "reader", Actor::setting, false, reader_keys()},
        {Verb::emit, "emit", Actor::producer, true, event},
        {Verb::batch, "batch", Actor::producer, false, {}},
        {Verb::add, "add", Actor::producer, true, event},
        {Verb::end, "end", Actor::producer, false, {}},
        {Verb::reserve,
         "reserve",
         Actor::producer,
         true,
         {kPayload, kTypeLen, kSeed, kOrigin, kExtra}},
        {Verb::fill,
         "fill",
         Actor::producer,
         false,
         {{Key::offset, 0, kMax32, 0}, {Key::bytes, 0, kMax32, kMax32}}},
        {Verb::commit, "commit", Actor::producer, false, {}},
        {Verb::abandon, "abandon", Actor::producer, false, {}},
        {Verb::handover, "handover", Actor::producer, false, swap},
        {Verb::resize, "resize", Actor::producer, false, swap},
        {Verb::prepare, "prepare", Actor::producer, false, swap},
        {Verb::copy, "copy", Actor::producer, false, {}},
        {Verb::change, "change", Actor::producer, false, {}},
        {Verb::nudge, "nudge", Actor::producer, false, {kBuffer}},
        {Verb::retire, "retire", Actor::producer, false, {}},
        {Verb::advance, "advance", Actor::schedule, false, {kCount}},
        {Verb::finish, "finish", Actor::schedule, false, {}},
        {Verb::step, "step", Actor::schedule, false, {kConsumer, kCount}},
        {Verb::run, "run", Actor::schedule, false, consumer},
        {Verb::restart, "restart", Actor::schedule, false, consumer},
        {Verb::expire, "expire", Actor::schedule, false, consumer},
        {Verb::interrupt, "interrupt", Actor::schedule, false, consumer},
        {Verb::jump,
         "jump",
         Actor::world,
         false,
         {{Key::forward, 0, 1ull << 62, 0}, {Key::back, 0, 1ull << 62, 0}}},
        {Verb::poke,
         "poke",
         Actor::world,
         false,
         {kBuffer, {Key::offset, 0, kMetadataBytes - 1, 0}, {Key::value, 0, 255, 0}}},
        {Verb::corrupt,
         "corrupt",
         Actor::world,
         false,
         {{Key::event, 0, 100000, 0}, {Key::value, 0, kMax32, 0}}},
        {Verb::attach,
         "attach",
         Actor::world,
         false,
         {{Key::refuse, 0, 1000, 0}, {Key::foreign, 0, 1000, 0}}},
    };
}

const std::vector<VerbRule>& rules() {
    static const std::vector<VerbRule> table = make_rules();
    return table;
}

constexpr std::array<std::string_view, kKeyCount> kKeyNames = {
    "capacity", "position", "sequence", "clock",  "cpu",   "phase",     "guard",    "consumer",
    "form",     "sharing",  "spin",     "room",   "stop",  "payload",   "type_len", "seed",
    "origin",   "style",    "extra",    "offset", "bytes", "positions", "shift",    "buffer",
    "count",    "forward",  "back",     "value",  "event", "refuse",    "foreign",
};

}  // namespace

const VerbRule& rule_of(Verb verb) {
    return rules()[static_cast<std::size_t>(verb)];
}

const KeyRule* rule_of(Verb verb, Key key) {
    for (const KeyRule& rule : rule_of(verb).keys) {
        if (rule.key == key) return &rule;
    }
    return nullptr;
}

std::string_view name_of(Key key) {
    return kKeyNames[static_cast<std::size_t>(key)];
}

const std::vector<std::string_view>& words_of(Key key) {
    static const std::vector<std::string_view> phase = {"rings", "boot"};
    static const std::vector<std::string_view> guard = {"core", "platform"};
    static const std::vector<std::string_view> form = {"copy", "place", "bulk", "run"};
    static const std::vector<std::string_view> sharing = {"exclusive", "shared"};
    static const std::vector<std::string_view> style = {"kernel", "call"};
    static const std::vector<std::string_view> positions = {"keep", "zero", "shift"};
    static const std::vector<std::string_view> none;
    switch (key) {
        case Key::phase:
            return phase;
        case Key::guard:
            return guard;
        case Key::form:
            return form;
        case Key::sharing:
            return sharing;
        case Key::style:
            return style;
        case Key::positions:
            return positions;
        default:
            return none;
    }
}

Operation::Operation(Verb of) : verb(of) {
    const VerbRule& rule = rule_of(of);
    for (const KeyRule& key : rule.keys) set(key.key, key.standard);
    if (rule.has_type) type = kStandardType;
}

std::string full_type(const Operation& operation) {
    const std::uint64_t bytes = operation[Key::type_len];
    if (bytes == 0 || operation.type.empty()) return operation.type;
    std::string text;
    text.reserve(bytes + operation.type.size());
    while (text.size() < bytes) text += operation.type;
    text.resize(bytes);
    return text;
}

namespace {

// Word number `index` of a splitmix64 generator that starts with `seed`.
std::uint64_t payload_word(std::uint64_t seed, std::uint64_t index) {
    std::uint64_t word = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}

}  // namespace

std::uint8_t payload_byte(std::uint64_t seed, std::uint64_t index) {
    return static_cast<std::uint8_t>(payload_word(seed, index / 8) >> (8 * (index % 8)));
}

std::string payload_bytes(std::uint64_t seed, std::uint64_t bytes) {
    std::string payload(bytes, '\0');
    for (std::uint64_t start = 0; start < bytes; start += 8) {
        std::uint64_t word = payload_word(seed, start / 8);
        const std::uint64_t end = std::min(bytes, start + 8);
        for (std::uint64_t i = start; i < end; i++, word >>= 8) {
            payload[i] = static_cast<char>(word);
        }
    }
    return payload;
}

Operation Script::settings() const {
    if (!operations.empty() && operations[0].verb == Verb::settings) return operations[0];
    return Operation(Verb::settings);
}

std::vector<Operation> Script::readers() const {
    std::vector<Operation> found;
    for (std::size_t i = 0; i < first_operation(); i++) {
        if (operations[i].verb == Verb::reader) found.push_back(operations[i]);
    }
    if (found.empty()) found.emplace_back(Verb::reader);
    return found;
}

std::size_t Script::first_operation() const {
    std::size_t index = 0;
    while (index < operations.size() && rule_of(operations[index].verb).actor == Actor::setting) {
        index++;
    }
    return index;
}

}  // namespace kmes::props
