// SPDX-License-Identifier: MIT
//
// Explains what is wrong with one field of an E record of a known event, and what would be correct.
// Knows no report.
#ifndef KMES_CONFORMANCE_MAIN_FIELD_MISTAKE_H_
#define KMES_CONFORMANCE_MAIN_FIELD_MISTAKE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/oracle/digest_mistake.h"
#include "conformance/oracle/history.h"

namespace kmes::conformance {

// `number` counts the fields after the E, from 1 (cpu) to 7 (digest). `field` is not the correct
// one.
std::string explain_field(std::size_t number, std::string_view field, std::uint32_t cpu,
                          const Event& event);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_FIELD_MISTAKE_H_
