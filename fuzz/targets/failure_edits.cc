// SPDX-License-Identifier: MIT
//
// See failure_edits.h.
#include "fuzz/targets/failure_edits.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "conformance/failure/file_limits.h"
#include "conformance/failure/schedule_text.h"
#include "conformance/model/finding.h"
#include "conformance/model/history_log.h"
#include "conformance/model/settings.h"
#include "conformance/model/timeline.h"

namespace kmes::fuzz {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostEdits = 24;
constexpr std::size_t kMostBytes = 65536;  // added by one edit
constexpr std::size_t kMostNodes = 2000;

// Has every possible member, every operation, and most words.
constexpr std::string_view kSound = R"json(
{"kmes_failure":2,"suite":"kmes-conformance 1","case":"5.1.8.2/explored-sleep",
"level":"erratum","clause":"E2","message":"CPU 0: asleep although event 2 is published",
"run":{"testee":["./consumer",{"hex":"ff00"}],"cpus":2,"capacity_bytes":65536,"seed":1,
"timeout_scale":2.5,"explore":{"on":true,"seconds":30.0,"deep":false},"shared":false,
"soak_seconds":0.0,"device":"/dev/kmes","stepping":"guards","stepper":"guard pages"},
"schedule":{"scenario":"wake","seed":7,"drawn":false,"moves":[{"phase":1,"cpu":0,
"offset_bytes":64,"size_bytes":8,"is_write":false,"occurrence":2,"action":"emit",
"parameter":100},{"phase":1,"cpu":1,"offset_bytes":4100,"size_bytes":64,"is_write":true,
"occurrence":1,"split_bytes":8,"action":"tear","parameter":13},{"phase":2,"cpu":0,
"offset_bytes":128,"size_bytes":4,"is_write":false,"occurrence":3,"kind":"wait",
"action":"grow","parameter":1,"further":1},{"phase":3,"cpu":0,"offset_bytes":64,
"size_bytes":8,"is_write":false,"occurrence":1,"action":"reserve","parameter":2,
"written":"header"}]},"nearest_passing":{"scenario":"wake","seed":7,"drawn":false,"moves":[{
"phase":1,"cpu":0,"offset_bytes":64,"size_bytes":8,"is_write":false,"occurrence":2,
"action":"emit","parameter":100,"kind":"sleep"}]},"points":[{"phase":0,"cpu":0,
"offset_bytes":0,"size_bytes":8,"is_write":false,"occurrence":1},{"phase":1,"cpu":0,
"offset_bytes":64,"size_bytes":8,"is_write":false,"occurrence":1},{"phase":1,"cpu":0,
"offset_bytes":64,"size_bytes":8,"is_write":false,"occurrence":2},{"phase":1,"cpu":0,
"offset_bytes":4096,"size_bytes":8,"is_write":false,"occurrence":1,"split_bytes":4,
"kind":"access"}],"judge":{"exited_with_zero":false,"cut_short":true,
"maximum_findings_per_code":8},"findings":[{"by":"driver","code":"lost-wake-up",
"clause":"E2","message":"CPU 0: asleep","cpu":0,"sequence":2,"line":3},{"by":"oracle",
"code":"contract","clause":"contract","message":"said otherwise"}],"history":{
"complete":true,"cpus":2,"capacity_bytes":65536,"boot_capacity_bytes":4096,
"start_positions":[0,4096],"first_sequence":1,"first_generation":1,"first_futex_counter":0,
"maximum_call_event_bytes":4096,"kept_payload_bytes":134217728,"report_bytes":57,
"operations":[{"do":"hand_over","cpu":0,"capacity_bytes":65536,"positions":"keep"},{
"do":"hand_over","cpu":1,"capacity_bytes":65536,"positions":"tail_at","position":4096},{
"do":"note_attached","buffer":2},{"do":"emit","cpu":0,"type":"t",
"timestamp":1700000000000000000,"payload":{"seed":1,"length":70}},{"do":"emit","cpu":0,
"style":"call","type":{"hex":"c3a9"},"origin":3,"timestamp":9,"extra_header":"x",
"payload":"ab","report_bytes":6},{"do":"batch_begin","cpu":0,"written":"half",
"written_event":1},{"do":"batch_add","cpu":0,"type":"t","timestamp":10,"payload":{"seed":5,
"length":40}},{"do":"batch_end","cpu":0},{"do":"drop","cpu":0},{"do":"note_draining",
"buffer":2},{"do":"swap","cpu":0,"capacity_bytes":131072,"positions":"shift",
"position":1000},{"do":"nudge","buffer":2},{"do":"spurious_wake","buffer":4},{
"do":"note_attached","buffer":4},{"do":"set_fault","buffer":3,"fault":"corrupt_content",
"detail":"torn"},{"do":"tolerate","cpu":1},{"do":"checkpoint_idle","cpu":0,"buffer":4,
"delivered_bytes":40},{"do":"reserve","cpu":0,"bytes":64,"written":"header"},{"do":"emit",
"cpu":0,"type":"t","timestamp":11,"payload":"cd"},{"do":"outrun","cpu":1,"laps":2,
"events":7}]},"report":{"left_out_bytes":0,"lines":["G 0 1",
"E 0 1 1700000000000000000 0 74 70 b63f1104f630c7d8","E 0 2 9 3 c3a9 2 89c50a07b5c0fbe2",
""]},"standard_error":["warning: ",{"hex":"fe"}],"timeline":{"left_out":0,"steps":[{
"kind":"attach","thread":1,"text":"kmes_attach: gets 2 buffers","clause":"5.1.8.3 step 2"},{
"kind":"map","thread":1,"cpu":0,"text":"maps the buffer"},{"kind":"producer","cpu":0,
"text":"emits event 1: 100 bytes at position 0","clause":"5.1.7","sequence":1,"state":{
"buffer":2,"write_pos":100,"tail_pos":0,"generation":1,"futex_counter":1,"need_wake":0,
"retired":false}},{"kind":"access","thread":1,"cpu":0,"text":"reads write_pos: 100",
"instruction":"mov rax, [rdi+0x40]","source":"consumer.c:120"},{"kind":"producer","cpu":0,
"text":"emits event 2: 40 bytes at position 100","sequence":2,"state":{"buffer":2,
"write_pos":140,"tail_pos":0,"generation":1,"futex_counter":2,"need_wake":1,
"retired":true}},{"kind":"access","thread":2,"cpu":1,"text":"reads need_wake: 1"},{
"kind":"scheduler","text":"thread 2 is held"},{"kind":"wait_begin","thread":2,"cpu":1,
"text":"enters futex_wait"},{"kind":"wait_end","thread":2,"cpu":1,
"text":"leaves futex_wait"},{"kind":"record","thread":1,"cpu":0,"text":"E 0 1","sequence":1,
"decisive":true,"why":"The event was delivered too late."},{"kind":"end","cpu":0,
"text":"FAILED, lost-wake-up: CPU 0: asleep","clause":"E2","sequence":2,"decisive":true,
"why":"No later step wakes it."}]}}
)json";

constexpr std::uint64_t kNumbers[] = {0,          1,
                                      2,          7,
                                      8,          64,
                                      100,        255,
                                      256,        4096,
                                      65535,      65536,
                                      1 << 20,    0x7fffffff,
                                      0x80000000, 10000,
                                      0xffffffff, 1ull << 32,
                                      1ull << 40, 1ull << 62,
                                      1ull << 63, 0xfffffffffffffffe,
                                      ~0ull};

template <std::size_t kCount>
void add(std::vector<std::string>* words, const std::string_view (&names)[kCount]) {
    words->insert(words->end(), std::begin(names), std::end(names));
}

// Returns every word of an enumeration that a file can contain.
std::vector<std::string> make_words() {
    using namespace conformance;
    std::vector<std::string> words = {"must", "should", "robust", "kernel", "oracle", "true"};
    for (int action = 0; action <= static_cast<int>(Action::yield); ++action)
        words.emplace_back(action_name(static_cast<Action>(action)));
    for (int kind = 0; kind <= static_cast<int>(OperationKind::outrun); ++kind)
        words.emplace_back(operation_name(static_cast<OperationKind>(kind)));
    words.insert(words.end(), finding_names().begin(), finding_names().end());
    add(&words, kWrittenNames);
    add(&words, kStepperNames);
    words.insert(words.end(), kPointKindNames.begin(), kPointKindNames.end());
    words.insert(words.end(), kFaultNames.begin(), kFaultNames.end());
    words.insert(words.end(), kPositionRuleNames.begin(), kPositionRuleNames.end());
    words.insert(words.end(), kStepKindNames.begin(), kStepKindNames.end());
    return words;
}

class Editor {
  public:
    explicit Editor(FuzzedBytes* bytes) : bytes_(*bytes) {
        static const Json kFile = Json::parse(kSound);
        file_ = kFile;
    }

    std::string run() {
        for (std::size_t i = 0; i < kMostEdits && !bytes_.empty(); ++i) {
            nodes_.clear();
            parents_.clear();
            collect(&file_, nullptr);
            edit();
        }
        return file_.dump(-1, ' ', false, Json::error_handler_t::replace);
    }

  private:
    // Collects every value below this one, in the order of the text.
    void collect(Json* value, Json* parent) {
        nodes_.push_back(value);
        parents_.push_back(parent);
        if (!value->is_structured()) return;
        for (Json& child : *value) collect(&child, value);
    }

    std::size_t pick() { return bytes_.below(nodes_.size()); }

    void edit() {
        const std::size_t at = pick();
        Json& value = *nodes_[at];
        switch (bytes_.below(10)) {
            case 0:
                value = kNumbers[bytes_.below(std::size(kNumbers))];
                return;
            case 1:
                value = bytes_.take<std::uint64_t>();
                return;
            case 2:
                if (value.is_number_unsigned())
                    value = value.get<std::uint64_t>() + bytes_.take<std::uint8_t>() - 128;
                else if (value.is_boolean())
                    value = !value.get<bool>();
                return;
            case 3:
                value = word();
                return;
            case 4:
                value = text();
                return;
            case 5:
                return erase(at);
            case 6:
                return repeat(&value);
            case 7:
                return replace(at);
            case 8:
                return add_member(&value);
            default:
                value = other();
        }
    }

    std::string word() {
        static const std::vector<std::string> kWords = make_words();
        return kWords[bytes_.below(kWords.size())];
    }

    // A string if it is UTF-8; otherwise in the form of the file for other bytes.
    Json text() {
        const std::string_view piece = bytes_.piece(bytes_.take<std::uint8_t>());
        constexpr std::string_view kDigits = "0123456789abcdef";
        std::string digits;
        bool is_ascii = true;
        for (const char byte : piece) {
            const auto value = static_cast<unsigned char>(byte);
            is_ascii = is_ascii && value < 0x80;
            digits += {kDigits[value / 16], kDigits[value % 16]};
        }
        if (is_ascii) return std::string(piece);
        return Json{{"hex", digits}};
    }

    Json other() {
        const std::uint64_t which = bytes_.below(6);
        const std::array<Json, 6> others = {Json(),      Json(-1),      Json(0.5),
                                            Json(1e300), Json::array(), Json::object()};
        return others[which];
    }

    void erase(std::size_t at) {
        Json* parent = parents_[at];
        if (parent == nullptr) return;
        for (auto member = parent->begin(); member != parent->end(); ++member) {
            if (&*member != nodes_[at]) continue;
            parent->erase(member);
            return;
        }
    }

    // Repeats the last item of a list up to 255 times.
    void repeat(Json* list) {
        const std::size_t times = bytes_.take<std::uint8_t>();
        if (!list->is_array() || list->empty() || is_large()) return;
        const Json last = list->back();
        const std::size_t room = kMostBytes / (last.dump(-1, ' ', true).size() + 1);
        for (std::size_t i = 0; i < times && i < room; ++i) list->push_back(last);
    }

    // Replaces a value by a copy of another one.
    void replace(std::size_t at) {
        Json by = *nodes_[pick()];
        if (by.is_structured() && is_large()) return;
        *nodes_[at] = std::move(by);
    }

    // Adds a copy of another object's member.
    void add_member(Json* object) {
        const std::size_t from = pick();
        const Json* owner = parents_[from];
        if (!object->is_object() || owner == nullptr || !owner->is_object() || is_large()) return;
        for (auto member = owner->begin(); member != owner->end(); ++member) {
            if (&*member != nodes_[from]) continue;
            const std::string name = member.key();
            Json copy = *member;
            (*object)[name] = std::move(copy);
            return;
        }
    }

    // Copies of copies would double its size with each edit.
    bool is_large() const { return nodes_.size() > kMostNodes; }

    FuzzedBytes& bytes_;
    Json file_;
    std::vector<Json*> nodes_;
    std::vector<Json*> parents_;
};

}  // namespace

std::string edited_failure(FuzzedBytes* bytes) {
    return Editor(bytes).run();
}

}  // namespace kmes::fuzz
