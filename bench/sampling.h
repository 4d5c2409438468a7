// SPDX-License-Identifier: MIT
//
// Compares variants by medians. Takes one sample of each in turn (A B A B ...), so that a drift of
// the machine affects all of them. Repeats a sample if the thread was preempted.
#ifndef KMES_BENCH_SAMPLING_H
#define KMES_BENCH_SAMPLING_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kmes::bench {

struct Sample {
    double value;       // ns for an operation, or the unit of the table
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
    double median = 0;  // ns for an operation, or the unit of the table
    double low = 0;     // the 10th and the 90th percentile of the accepted samples
    double high = 0;
    unsigned samples = 0;   // accepted
    unsigned rejected = 0;  // disturbed, and repeated
};

struct Sampling {
    unsigned samples = 15;
    // The limit of repetitions for each accepted sample. After that a disturbed sample counts,
    // since a busy machine may have no undisturbed one.
    unsigned tries = 20;
};

// CLOCK_MONOTONIC, in ns.
std::uint64_t now_ns();

// Returns how often the calling thread has been preempted.
long preemptions();

// Returns a figure for each variant, in their order.
std::vector<Figure> measure(const std::vector<Variant>& variants, const Sampling& sampling);

// Returns the value below which `share` (0 to 1) of the samples are. `samples` must not be empty.
double quantile(std::vector<double> samples, double share);

}  // namespace kmes::bench

#endif
