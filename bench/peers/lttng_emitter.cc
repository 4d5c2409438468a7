// SPDX-License-Identifier: MIT
//
// lttng_emitter BYTES RATE SECONDS: emits for LTTng's consumer daemon in `tools/kmes bench
// consumers`. Records a tracepoint of BYTES bytes RATE times a second, or as fast as possible, and
// prints the number of tracepoints. tools/lib/bench_lttng.sh makes the session.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/peers/lttng_tracepoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace {

// A separate thread of the library contacts the session daemon, and the kernel may start it late.
constexpr unsigned kMaxWaits = 500;
constexpr useconds_t kWaitUs = 10000;
constexpr std::uint64_t kBatch = 64;  // as kmes-consumers emits

double now_seconds() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::uint64_t emit_for(const std::vector<std::uint8_t>& record, double rate, double seconds) {
    const double begin = now_seconds();
    std::uint64_t emitted = 0;
    for (double now = begin; now - begin < seconds; now = now_seconds()) {
        if (static_cast<double>(emitted) > (now - begin) * rate) continue;
        for (std::uint64_t i = 0; i < kBatch; i++)
            lttng_ust_tracepoint(kmes_bench, record, record.data(),
                                 static_cast<std::uint16_t>(record.size()));
        emitted += kBatch;
    }
    return emitted;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        fputs("usage: lttng_emitter BYTES RATE SECONDS\n", stderr);
        return 2;
    }
    const std::vector<std::uint8_t> record(strtoul(argv[1], nullptr, 10) & UINT16_MAX, 'p');
    for (unsigned waits = 0; !lttng_ust_tracepoint_enabled(kmes_bench, record); waits++) {
        if (waits == kMaxWaits) {
            fputs("no session of LTTng records kmes_bench:*\n", stderr);
            return 1;
        }
        usleep(kWaitUs);
    }
    const std::uint64_t emitted =
        emit_for(record, strtod(argv[2], nullptr), strtod(argv[3], nullptr));
    printf("%llu\n", static_cast<unsigned long long>(emitted));
    return 0;
}
