/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The effect of kmes_batch_emit_entries, entry by entry: the checks of the emit call, and
 * kmes_batch_emit_call.
 */
#ifndef KMES_TESTS_ONE_BY_ONE_H
#define KMES_TESTS_ONE_BY_ONE_H

#include <vector>

#include "kmes/ring.h"

namespace kmes::tests {

inline int emit_one_by_one(kmes_cpu* cpu, const kmes_batch& batch, const kmes_batch_rules& rules,
                           const std::vector<kmes_batch_entry>& entries, __u32* emitted) {
    *emitted = 0;
    for (const kmes_batch_entry& entry : entries) {
        kmes_event_input input{};

        if (entry.type_len == 0 || entry.type_len > 65535) return -EINVAL;
        if (!kmes_utf8_check(entry.type, entry.type_len)) return -EINVAL;
        if (entry.payload_len > rules.max_event_bytes) return -ENOSPC;
        input.type = entry.type;
        input.type_len = static_cast<__u16>(entry.type_len);
        input.payload = entry.payload;
        input.payload_len = static_cast<__u32>(entry.payload_len);
        input.origin_class = rules.origin_class;
        if (kmes_event_bytes(&input) > rules.max_event_bytes) return -ENOSPC;
        const int error = kmes_batch_emit_call(cpu, &batch, &input);

        if (error) return error;
        ++*emitted;
    }
    return 0;
}

}  // namespace kmes::tests

#endif
