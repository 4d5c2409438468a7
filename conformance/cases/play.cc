// SPDX-License-Identifier: MIT
//
// See play.h.
#include "conformance/cases/play.h"

#include <string.h>

#include <deque>
#include <utility>

#include "conformance/model/layout.h"

namespace kmes::conformance {

std::string_view kept_text(std::string text) {
    static std::deque<std::string> kept;
    return kept.emplace_back(std::move(text));
}

std::string_view name_of_error_before_rings() {
    return strerrorname_np(layout().error_before_rings);
}

void stop_not_applicable(std::string_view why) {
    stop_unsupported(fmt::format("not applicable in form {}: {}", layout().name, why));
}

void RequireLongerHeaders::operator()(Stage&) const {
    if (!layout().header_may_grow)
        stop_not_applicable("header_size is never more than the header and the type");
}

std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

}  // namespace kmes::conformance
