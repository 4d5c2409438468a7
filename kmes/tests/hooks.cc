// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The one hook of the hooked core, installed while the test runs (hooks.h).
 */
#include "kmes/tests/hooks.h"

#include <algorithm>
#include <vector>

namespace kmes::tests {
namespace {

struct State {
    std::vector<RingMemory*> memories;
    RingMemory* written_memory = nullptr;
    const void* written = nullptr;
    std::uint64_t written_bytes = 0;
    AccessFunction function;
};

thread_local bool in_function = false;

State& state() {
    static State the_state;
    return the_state;
}

bool is_data_store(enum kmes_order_label label) {
    return label == KMES_ORDER_DATA || label == KMES_ORDER_SWAP_DATA;
}

void remember_store(const kmes_order_access& access) {
    for (RingMemory* memory : state().memories) {
        if (!memory->contains(access.address)) continue;
        state().written_memory = memory;
        state().written = access.address;
        state().written_bytes = access.bytes;
    }
}

/* The reported access happens after this returns, so the previous one has happened. */
void on_access(void*, const struct kmes_order_access* access) {
    settle_mirror();
    if (state().function && !in_function) {
        in_function = true;
        state().function(*access);
        in_function = false;
        settle_mirror();
    }
    if (is_data_store(access->label)) remember_store(*access);
}

void install() {
    kmes_order_hook = on_access;
}

}  // namespace

ScopedHook::ScopedHook(AccessFunction function) {
    install();
    state().function = std::move(function);
}

ScopedHook::~ScopedHook() {
    state().function = nullptr;
}

void register_memory(RingMemory* memory) {
    install();
    if (memory->is_mirrored()) state().memories.push_back(memory);
}

void unregister_memory(RingMemory* memory) {
    if (state().written_memory == memory) state().written_memory = nullptr;
    std::erase(state().memories, memory);
}

void settle_mirror() {
    if (state().written_memory)
        state().written_memory->mirror(state().written, state().written_bytes);
    state().written_memory = nullptr;
}

}  // namespace kmes::tests
