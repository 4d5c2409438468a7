// SPDX-License-Identifier: MIT
//
// See sampling.h.
#include "bench/sampling.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstddef>

namespace kmes::bench {
namespace {

Sample take(const Variant& variant) {
    if (variant.take) return variant.take();
    if (variant.warm_up_operations) variant.run(variant.warm_up_operations);
    const long before = preemptions();
    const std::uint64_t start = now_ns();

    variant.run(variant.sample_operations);
    const std::uint64_t end = now_ns();

    return {static_cast<double>(end - start) / static_cast<double>(variant.sample_operations),
            preemptions() != before};
}

}  // namespace

std::uint64_t now_ns() {
    struct timespec now = {};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

long preemptions() {
    struct rusage usage = {};

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

double quantile(std::vector<double> samples, double share) {
    const auto last = static_cast<double>(samples.size() - 1);
    const auto at = samples.begin() + static_cast<std::ptrdiff_t>(last * share + 0.5);

    std::nth_element(samples.begin(), at, samples.end());
    return *at;
}

std::vector<Figure> measure(const std::vector<Variant>& variants, const Sampling& sampling) {
    std::vector<std::vector<double>> accepted(variants.size());
    std::vector<Figure> figures(variants.size());

    for (unsigned round = 0; round < sampling.samples; round++) {
        for (std::size_t i = 0; i < variants.size(); i++) {
            Sample sample = take(variants[i]);

            for (unsigned again = 0; sample.is_disturbed && again < sampling.tries; again++) {
                figures[i].rejected++;
                sample = take(variants[i]);
            }
            accepted[i].push_back(sample.value);
        }
    }
    for (std::size_t i = 0; i < variants.size(); i++) {
        figures[i].name = variants[i].name;
        figures[i].median = quantile(accepted[i], 0.5);
        figures[i].low = quantile(accepted[i], 0.1);
        figures[i].high = quantile(accepted[i], 0.9);
        figures[i].samples = static_cast<unsigned>(accepted[i].size());
    }
    return figures;
}

}  // namespace kmes::bench
