// SPDX-License-Identifier: MIT
//
// See script.h.
#include "fuzz/targets/script.h"

#include <string>
#include <string_view>
#include <variant>

#include "fuzz/fail.h"
#include "fuzz/targets/playing.h"
#include "props/script/script.h"

int kmes_fuzz_script(const std::uint8_t* data, std::size_t size) {
    using namespace kmes;
    const auto parsed =
        props::parse_script(std::string_view(reinterpret_cast<const char*>(data), size));
    if (const auto* error = std::get_if<props::ScriptError>(&parsed)) {
        fuzz::expect(!error->message.empty(), "an error that says nothing");
        fuzz::expect(error->message.find('\n') == std::string::npos, "an error of two lines");
        return 0;
    }
    const auto& script = std::get<props::Script>(parsed);
    const std::string printed = props::print_script(script);
    const auto again = props::parse_script(printed);
    fuzz::expect(
        std::holds_alternative<props::Script>(again) && std::get<props::Script>(again) == script,
        "what is printed is not read back as the same script:\n" + printed);
    // The engine must not keep it: nothing can be found near it.
    if (!fuzz::is_quick(script)) return -1;
    fuzz::play_or_abort(script);
    return 0;
}
