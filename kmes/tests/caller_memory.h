/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of a caller as kmes/call.h sees it. Addresses are only numbers, and a fetch fails if
 * nothing is there, or if the test says so. Knows no rules of the calls.
 */
#ifndef KMES_TESTS_CALLER_MEMORY_H
#define KMES_TESTS_CALLER_MEMORY_H

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kmes/abi.h"

namespace kmes::tests {

class CallerMemory {
  public:
    struct Fetch {
        std::uint64_t address;
        std::uint64_t bytes;

        bool operator==(const Fetch&) const = default;
    };

    /* Puts bytes at `address`. There is nothing after them. */
    void put(std::uint64_t address, const void* from, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; i++)
            there_[address + i] = static_cast<const std::uint8_t*>(from)[i];
    }
    void put(std::uint64_t address, const std::string& text) {
        put(address, text.data(), text.size());
    }

    /* Puts an entry of kmes_emit_batch, byte by byte as in event-model.md. The padding is not
     * zero, because nothing says that it is. */
    void put_entry(std::uint64_t address, std::uint64_t type, std::uint16_t type_len,
                   std::uint64_t payload, std::uint32_t payload_len) {
        std::uint8_t bytes[32];

        std::memset(bytes, 0xEE, sizeof(bytes));
        std::memcpy(bytes + 0, &type, 8);
        std::memcpy(bytes + 8, &type_len, 2);
        std::memcpy(bytes + 16, &payload, 8);
        std::memcpy(bytes + 24, &payload_len, 4);
        put(address, bytes, sizeof(bytes));
    }

    void take_away(std::uint64_t address) { there_.erase(address); }

    /* All fetches of the call so far, in order, with those that failed. */
    std::vector<Fetch> fetches;
    /* Fetch number `fail_at` (from 0) fails with fail_error. */
    std::uint64_t fail_at = ~0ull;
    int fail_error = -EFAULT;
    /* Called after a fetch has copied or failed. */
    std::function<void(const Fetch&)> after_fetch;

    /* `fetch` of struct kmes_call, with this object as its context. */
    static int fetch(void* context, void* to, const void* from, __u64 bytes) {
        auto* self = static_cast<CallerMemory*>(context);
        const Fetch fetch{reinterpret_cast<std::uint64_t>(from), bytes};
        int error = self->fetches.size() == self->fail_at ? self->fail_error : 0;

        self->fetches.push_back(fetch);
        for (std::uint64_t i = 0; !error && i < bytes; i++) {
            const auto byte = self->there_.find(fetch.address + i);

            if (byte == self->there_.end())
                error = -EFAULT;
            else
                static_cast<std::uint8_t*>(to)[i] = byte->second;
        }
        /* A failed fetch leaves arbitrary bytes. */
        if (error) std::memset(to, 'F', bytes);
        if (self->after_fetch) self->after_fetch(fetch);
        return error;
    }

  private:
    std::map<std::uint64_t, std::uint8_t> there_;
};

}  // namespace kmes::tests

#endif
