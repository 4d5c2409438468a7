// SPDX-License-Identifier: MIT
//
// See thread_numbers.h.
#include "conformance/stage/thread_numbers.h"

#include <fmt/format.h>

namespace kmes::conformance {

int ThreadNumbers::of(pid_t thread) {
    return numbers_.try_emplace(thread, static_cast<int>(numbers_.size()) + 1).first->second;
}

int ThreadNumbers::last_user_of(std::uint32_t cpu) const {
    const auto found = user_of_cpu_.find(cpu);
    return found == user_of_cpu_.end() ? 0 : found->second;
}

std::string ThreadNumbers::put_into(std::string message) const {
    for (const auto& [tid, number] : numbers_) {
        const std::string name = fmt::format("thread {} ", tid);
        for (std::size_t at = message.find(name); at != std::string::npos;
             at = message.find(name, at + 1))
            message.replace(at, name.size(), fmt::format("thread {} ", number));
    }
    return message;
}

}  // namespace kmes::conformance
