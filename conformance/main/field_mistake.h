// SPDX-License-Identifier: MIT
//
// What is wrong with one field of an E record whose event is known, and what would be right. Knows
// no report.
#ifndef KMES_CONFORMANCE_MAIN_FIELD_MISTAKE_H_
#define KMES_CONFORMANCE_MAIN_FIELD_MISTAKE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/oracle/digest_mistake.h"
#include "conformance/oracle/history.h"

namespace kmes::conformance {

// `number` counts the fields behind the E from 1 (cpu) to 7 (digest). `field` is not what is right.
std::string explain_field(std::size_t number, std::string_view field, std::uint32_t cpu,
                          const Event& event);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_FIELD_MISTAKE_H_
