// SPDX-License-Identifier: MIT
//
// The numbers of the form of the layout that this is compiled for (docs/layouts.md): form A, unless
// KMES_LAYOUT names another. Written without the core, as the model is.
#ifndef KMES_PROPS_FORM_H
#define KMES_PROPS_FORM_H

#include <cstdint>

#ifndef KMES_LAYOUT
#define KMES_LAYOUT 1
#endif

namespace kmes::props {

constexpr bool kHasPageOfConsumer = KMES_LAYOUT >= 2;
constexpr bool kHasGuids = KMES_LAYOUT >= 3;

constexpr std::uint64_t kMetadataBytes = kHasPageOfConsumer ? 8192 : 4096;
constexpr std::uint64_t kNeedWakeAt = kHasPageOfConsumer ? 4096 : 132;

constexpr std::uint64_t kGuidsAt = 27;                         // in an event
constexpr std::uint64_t kGuidsBytes = kHasGuids ? 3 * 16 : 0;  // zeros: no process is known
constexpr std::uint64_t kTypeLenAt = kGuidsAt + kGuidsBytes;
constexpr std::uint64_t kFixedBytes = kTypeLenAt + 2;      // of a header, before the type
constexpr std::uint64_t kSmallestEvent = kFixedBytes + 1;  // one byte of type, no payload

}  // namespace kmes::props

#endif
