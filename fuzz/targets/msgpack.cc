// SPDX-License-Identifier: MIT
//
// See msgpack.h.
#include "fuzz/targets/msgpack.h"

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fuzz/fail.h"
#include "kmesctl/msgpack_text.h"

namespace kmes::fuzz {
namespace {

using kmesctl::MsgpackEnd;
using Json = nlohmann::json;

// Whether JSON, and therefore the printer, shows the value in the same form.
bool is_plain(const Json& value) {
    if (value.is_binary() || value.is_discarded()) return false;
    if (value.is_number_float()) return false;  // NaN, and floats of two lengths
    if (!value.is_structured()) return true;
    for (const Json& element : value) {
        if (!is_plain(element)) return false;
    }
    return true;
}

// The printer shows bytes that are no UTF-8 as U+FFFD.
bool is_valid_utf8(const Json& value) {
    try {
        (void)value.dump();
        return true;
    } catch (const Json::exception&) {
        return false;
    }
}

void check_text(std::string_view bytes) {
    const kmesctl::MsgpackText text = kmesctl::msgpack_text(bytes);
    expect(text.text.size() <= kmesctl::kMsgpackMaxTextBytes, "the text is longer than its bound");
    expect(text.read_bytes <= bytes.size(), "more bytes were read than there are");
    expect((text.end == MsgpackEnd::kWhole) ==
               (text.read_bytes == bytes.size() && text.end != MsgpackEnd::kShort &&
                text.end != MsgpackEnd::kDeep && text.end != MsgpackEnd::kLong &&
                text.end != MsgpackEnd::kReserved && text.end != MsgpackEnd::kMore),
           "the end is whole where bytes are left");
    const bool is_value = text.end == MsgpackEnd::kWhole || text.end == MsgpackEnd::kMore;
    if (!is_value) return;
    const Json printed = Json::parse(text.text, nullptr, false);
    expect(!printed.is_discarded(), "the text of a whole value is no JSON: " + text.text);
    if (text.end != MsgpackEnd::kWhole) return;
    const Json right = Json::from_msgpack(bytes.begin(), bytes.end(), true, false);
    if (!is_plain(right) || !is_valid_utf8(right)) return;
    expect(printed == right, "the text is another value: " + text.text);
}

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_msgpack(const std::uint8_t* data, std::size_t size) {
    using namespace kmes;
    // In a separate allocation, so that a read beyond the end is noticed.
    const auto copy = std::make_unique<char[]>(size);
    if (size != 0) std::memcpy(copy.get(), data, size);
    const std::string_view bytes(copy.get(), size);
    fuzz::check_text(bytes);
    const bool is_container = kmesctl::is_msgpack_container(bytes);
    const bool is_first =
        size > 0 && ((data[0] >= 0x80 && data[0] < 0xA0) || (data[0] >= 0xDC && data[0] <= 0xDF));
    fuzz::expect(!is_container || is_first, "a container that begins as none");
    for (const char* path : {"a", "a.b", "0", "1.a", ""}) (void)kmesctl::msgpack_field(bytes, path);
    return 0;
}
