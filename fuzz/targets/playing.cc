// SPDX-License-Identifier: MIT
//
// See playing.h.
#include "fuzz/targets/playing.h"

#include <algorithm>
#include <string>

#include "fuzz/fail.h"
#include "props/machine/play.h"
#include "props/script/mutate.h"

namespace kmes::fuzz {
namespace {

using props::Key;

constexpr std::size_t kMostOperations = 400;
constexpr std::uint64_t kMostRingBytes = 1 << 18;
constexpr std::uint64_t kMostCount = 100000;  // of bytes of events, and of steps

}  // namespace

bool is_quick(const props::Script& script) {
    if (script.operations.size() > kMostOperations) return false;
    if (props::ring_bytes(script) > kMostRingBytes) return false;
    std::uint64_t count = 0;
    for (const props::Operation& operation : script.operations) {
        // An event larger than any ring here is refused before its bytes are read.
        const std::uint64_t payload = operation[Key::payload];
        if (payload <= kMostRingBytes) count += payload;
        count += operation[Key::type_len] + operation[Key::extra] % kMostRingBytes +
                 std::min(operation[Key::spin], kMostCount);
    }
    return count <= kMostCount;
}

void play_or_abort(const props::Script& script) {
    const props::PlayResult result = props::play(script);
    if (!result.failure) return;
    fail(props::describe(script, *result.failure) + "\nthe script, for tools/kmes replay:\n" +
         props::print_script(script));
}

}  // namespace kmes::fuzz
