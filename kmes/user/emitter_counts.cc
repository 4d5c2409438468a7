// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// See emitter_counts.h.
#include "kmes/user/emitter_counts.h"

#include <signal.h>

#include <cerrno>
#include <iterator>
#include <new>

namespace kmes {
namespace {

// Process 0 is in another PID namespace, so its end is not visible here.
bool has_ended(pid_t process) {
    return process > 0 && kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

void EmitterCounts::add_to(EmitterCount* sum, const EmitterCount& more) {
    sum->events += more.events;
    sum->bytes += more.bytes;
    sum->refused += more.refused;
}

void EmitterCounts::fold(Latest::iterator emitter) {
    add_to(&earlier_, *emitter);
    earlier_.emitters += emitter->emitters;
    places_.erase({emitter->process, emitter->user});
    latest_.erase(emitter);
}

EmitterCounts::Latest::iterator EmitterCounts::find_or_make(const EmitterCount& more) {
    auto [place, is_new] = places_.try_emplace({more.process, more.user}, latest_.end());

    if (!is_new) return place->second;
    try {
        latest_.push_front({more.process, more.user, 1, 0, 0, 0});
    } catch (const std::bad_alloc&) {
        places_.erase(place);
        throw;
    }
    place->second = latest_.begin();
    return place->second;
}

void EmitterCounts::add(const EmitterCount& more) noexcept {
    std::lock_guard lock(mutex_);

    try {
        auto emitter = find_or_make(more);

        add_to(&*emitter, more);
        latest_.splice(latest_.begin(), latest_, emitter);
        if (latest_.size() > kMost) fold(std::prev(latest_.end()));
    } catch (const std::bad_alloc&) {
        add_to(&earlier_, more);
    }
}

std::vector<EmitterCount> EmitterCounts::snapshot() {
    std::lock_guard lock(mutex_);
    std::vector<EmitterCount> counts;

    for (auto next = latest_.begin(); next != latest_.end();) {
        auto emitter = next++;

        if (has_ended(emitter->process)) fold(emitter);
    }
    counts.reserve(latest_.size() + 1);
    counts.push_back(earlier_);
    counts.insert(counts.end(), latest_.begin(), latest_.end());
    return counts;
}

}  // namespace kmes
