// SPDX-License-Identifier: MIT
//
// Selects the kmes_attach that the tracer serves for a form of the layout.
#ifndef KMES_CONFORMANCE_STAGE_ATTACH_FORM_H_
#define KMES_CONFORMANCE_STAGE_ATTACH_FORM_H_

#include "conformance/model/layout.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

inline AttachCall attach_call_of(const Layout& layout) {
    switch (layout.attach) {
        case AttachArguments::one_cpu:
            return AttachCall::kOneCpu;
        case AttachArguments::one_cpu_or_count:
            return AttachCall::kOneCpuOrCount;
        case AttachArguments::all_cpus:
            break;
    }
    return AttachCall::kAllCpus;
}

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_ATTACH_FORM_H_
