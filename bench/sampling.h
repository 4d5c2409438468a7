// SPDX-License-Identifier: MIT
//
// Measures variants against each other: one sample of each in turn (A B A B ...), so that a drift
// of the machine affects all of them, and reports medians. A sample is rejected and repeated if the
// thread was preempted. This part knows nothing of rings.
#ifndef KMES_BENCH_SAMPLING_H
#define KMES_BENCH_SAMPLING_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kmes::bench {

struct Sample {
    double value;       // ns of an operation, or what the table is of
    bool is_disturbed;  // a measured thread was preempted
};

// One thing to measure.
struct Variant {
    std::string name;
    // Performs `operations` operations, at least 1. Called on one thread.
    std::function<void(std::uint64_t operations)> run;
    std::uint64_t warm_up_operations = 0;  // before each sample
    std::uint64_t sample_operations = 1;   // in each sample
    // Replaces `run` for a figure that is not a mean.
    std::function<Sample()> take = {};
};

struct Figure {
    std::string name;
    double median = 0;  // ns of an operation, or what the table is of
    double low = 0;     // the 10th and the 90th percentile of the accepted samples
    double high = 0;
    unsigned samples = 0;   // accepted
    unsigned rejected = 0;  // disturbed, and taken again
};

struct Sampling {
    unsigned samples = 15;
    // How many disturbed samples are repeated for each accepted one. After that a disturbed sample
    // counts; otherwise a machine that is never quiet would be measured for ever.
    unsigned tries = 20;
};

// CLOCK_MONOTONIC, in ns.
std::uint64_t now_ns();

// How often the calling thread has been preempted.
long preemptions();

// One figure for each variant, in their order.
std::vector<Figure> measure(const std::vector<Variant>& variants, const Sampling& sampling);

// The value below which `share` (0 to 1) of the samples are. `samples` must not be empty.
double quantile(std::vector<double> samples, double share);

}  // namespace kmes::bench

#endif
