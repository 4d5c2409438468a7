// SPDX-License-Identifier: MIT
//
// See thread_numbers.h.
#include "conformance/stage/thread_numbers.h"

#include <charconv>
#include <system_error>

namespace kmes::conformance {

int ThreadNumbers::of(pid_t thread) {
    return numbers_.try_emplace(thread, static_cast<int>(numbers_.size()) + 1).first->second;
}

int ThreadNumbers::last_user_of(std::uint32_t cpu) const {
    const auto found = user_of_cpu_.find(cpu);
    return found == user_of_cpu_.end() ? 0 : found->second;
}

// One pass from left to right: a number may equal the id of another thread, in a PID namespace for
// example.
std::string ThreadNumbers::put_into(std::string_view message) const {
    constexpr std::string_view kThread = "thread ";
    std::string text;
    std::size_t copied = 0;
    for (std::size_t at = message.find(kThread); at != std::string_view::npos;
         at = message.find(kThread, at + 1)) {
        const std::size_t begin = at + kThread.size();
        pid_t tid = 0;
        const auto [end, error] =
            std::from_chars(message.data() + begin, message.data() + message.size(), tid);
        const auto found = error == std::errc() ? numbers_.find(tid) : numbers_.end();
        if (found == numbers_.end()) continue;
        text += message.substr(copied, begin - copied);
        text += std::to_string(found->second);
        copied = static_cast<std::size_t>(end - message.data());
    }
    return text += message.substr(copied);
}

}  // namespace kmes::conformance
