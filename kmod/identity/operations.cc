// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/identity/operations.h"

#include <cinttypes>
#include <cstdio>

namespace kmes::identity {
namespace {

#define KMES_IDENTITY_NAME(name) #name,
constexpr const char* kNames[] = {KMES_IDENTITY_CORE(KMES_IDENTITY_NAME)};
#undef KMES_IDENTITY_NAME

}  // namespace

std::uint64_t OperationTable::times(CoreOperation operation) const {
    std::uint64_t sum = 0;
    for (const auto& [result, times] : times_[operation]) sum += times;
    return sum;
}

void OperationTable::add(const OperationTable& other) {
    for (std::size_t i = 0; i < kCoreOperations; i++)
        for (const auto& [result, times] : other.times_[i]) times_[i][result] += times;
}

void OperationTable::print() const {
    std::printf("%-24s %10s  by result\n", "operation of the core", "times");
    for (std::size_t i = 0; i < kCoreOperations; i++) {
        std::printf("%-24s %10" PRIu64 " ", kNames[i], times(static_cast<CoreOperation>(i)));
        for (const auto& [result, times] : times_[i])
            std::printf(" %" PRId64 ":%" PRIu64, result, times);
        std::printf("\n");
    }
}

bool OperationTable::is_complete() const {
    bool is_complete = true;
    for (std::size_t i = 0; i < kCoreOperations; i++) {
        if (times(static_cast<CoreOperation>(i))) continue;
        std::printf("never played: %s\n", kNames[i]);
        is_complete = false;
    }
    return is_complete;
}

}  // namespace kmes::identity
