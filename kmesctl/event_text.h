// SPDX-License-Identifier: MIT
// Formats one event as one line, and filters the printed events. Types and payloads are hostile.
#ifndef KMES_KMESCTL_EVENT_TEXT_H_
#define KMES_KMESCTL_EVENT_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kmes/event.h"

namespace kmes::kmesctl {

enum class PayloadForm { kAuto, kText, kHex, kMsgpack, kNone };

struct LineStyle {
    PayloadForm payload = PayloadForm::kAuto;
    bool is_json = false;
    bool has_colors = false;
};

// Appends the line of the event to `line`, with a newline. As JSON: an object with timestamp (ns),
// cpu, sequence, origin, type, payload and payload_form ("text", "hex" or "msgpack").
void append_event_line(const struct kmes_event_view& event, const LineStyle& style,
                       std::string* line);

// Reports the events that are missing before `event`, which has lost_before > 0. As JSON: an object
// with lost, cpu and before_sequence.
void append_loss_line(const struct kmes_event_view& event, const LineStyle& style,
                      std::string* line);

// Reports that the later events of this CPU are from another producer, as a JSON object with
// session and cpu. It is the same as that of kmesctl convert.
void append_session_line(unsigned cpu, std::uint64_t session, std::string* line);

// Selects the printed events. An empty list accepts all.
struct Filter {
    std::vector<std::pair<unsigned, unsigned>> cpus;  // first and last of each range
    std::vector<unsigned> origins;
    std::vector<std::string> type_globs;                      // fnmatch(3), any of them
    std::vector<std::pair<std::string, std::string>> fields;  // path and text, all of them

    bool has_cpu(unsigned cpu) const;
    bool matches(const struct kmes_event_view& event) const;
};

// Parses "0,2-5". Returns nothing if it is no list of CPUs.
std::optional<std::vector<std::pair<unsigned, unsigned>>> parse_cpus(std::string_view text);

// Parses "PATH=VALUE" of --field, for Filter::fields. Throws a Failure of kExitUsage that names
// `option`.
std::pair<std::string, std::string> field_option(const char* option, const std::string& text);

// Parses "userspace", "kmes", "kacs", "lcs", or a number from 0 to 255.
std::optional<unsigned> parse_origin(std::string_view text);

// Returns "userspace", for example, or "origin-7" for a class without a name.
std::string origin_text(unsigned origin_class);

// Returns quoted text, hexadecimal digits, or MessagePack as JSON, with a note if that is
// truncated.
std::string payload_text(std::string_view payload, PayloadForm wanted);

std::string_view type_of(const struct kmes_event_view& event);
std::string_view payload_of(const struct kmes_event_view& event);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_EVENT_TEXT_H_
