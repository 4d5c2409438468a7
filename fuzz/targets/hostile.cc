// SPDX-License-Identifier: MIT
//
// See hostile.h.
#include "fuzz/targets/hostile.h"

#include <string_view>
#include <variant>
#include <vector>

#include "fuzz/targets/playing.h"
#include "props/script/script.h"

int kmes_fuzz_hostile(const std::uint8_t* data, std::size_t size) {
    using namespace kmes;
    const auto parsed =
        props::parse_script(std::string_view(reinterpret_cast<const char*>(data), size));
    if (std::holds_alternative<props::ScriptError>(parsed)) return 0;
    props::Script script = std::get<props::Script>(parsed);
    if (!fuzz::is_quick(script)) return -1;
    fuzz::play_or_abort(script);
    const std::size_t pokes = std::erase_if(script.operations, [](const auto& operation) {
        return operation.verb == props::Verb::poke;
    });
    if (pokes > 0) fuzz::play_or_abort(script);
    return 0;
}
