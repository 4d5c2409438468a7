// SPDX-License-Identifier: MIT
//
// Builds whole scripts from phrases (drawing.h).
#include "props/script/generate.h"

namespace kmes::props {

Script generate(std::uint64_t seed, std::size_t size, Profile profile) {
    Random random(seed);
    Script script;
    script.operations.push_back(draw_settings(random, profile));
    const std::uint64_t capacity = script.settings()[Key::capacity];
    for (Operation& reader : draw_readers(random, profile, capacity)) {
        script.operations.push_back(std::move(reader));
    }
    Drawing drawing(random, profile, script);
    drawing.phrases_until(size);
    const std::vector<Operation>& lines = drawing.lines();
    script.operations.insert(script.operations.end(), lines.begin(), lines.end());
    return script;
}

}  // namespace kmes::props
