// SPDX-License-Identifier: MIT
//
// The tracepoint of lttng.cc. LTTng's macros include this file more than once.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kmes_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench/peers/lttng_tracepoint.h"

#if !defined(KMES_BENCH_PEERS_LTTNG_TRACEPOINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KMES_BENCH_PEERS_LTTNG_TRACEPOINT_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(kmes_bench, record,
                           LTTNG_UST_TP_ARGS(const uint8_t*, bytes, uint16_t, count),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_sequence(uint8_t, bytes, bytes,
                                                                        uint16_t, count)))

#endif

#include <lttng/tracepoint-event.h>
