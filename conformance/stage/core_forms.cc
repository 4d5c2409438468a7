// SPDX-License-Identifier: MIT
//
// See core_forms.h.
#include "conformance/stage/core_forms.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "conformance/model/layout.h"

namespace kmes::conformance {
namespace {

struct CoreForm {
    std::string_view name;  // Layout::core_form
    std::unique_ptr<RingBackend> (*make)();
};

constexpr CoreForm kCores[] = {
    {"A", make_core_backend_form_a},
    {"B", make_core_backend_form_b},
    {"D", make_core_backend_form_d},
};

}  // namespace

std::unique_ptr<RingBackend> make_core_backend() {
    const auto* core = std::ranges::find(kCores, layout().core_form, &CoreForm::name);
    if (core == std::end(kCores)) throw SuiteError("no core has this form of the layout");
    return core->make();
}

}  // namespace kmes::conformance
