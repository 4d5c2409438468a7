// SPDX-License-Identifier: MIT
//
// The backends of core_backend.cc, which the build compiles once for each core (form_names.h).
#ifndef KMES_CONFORMANCE_STAGE_CORE_FORMS_H_
#define KMES_CONFORMANCE_STAGE_CORE_FORMS_H_

#include <memory>

#include "conformance/stage/ring_backend.h"

namespace kmes::conformance {

std::unique_ptr<RingBackend> make_core_backend_form_a();
std::unique_ptr<RingBackend> make_core_backend_form_b();
std::unique_ptr<RingBackend> make_core_backend_form_d();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_CORE_FORMS_H_
