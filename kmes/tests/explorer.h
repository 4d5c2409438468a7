/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A small systematic explorer. A consumer and a producer run one at a time, and hand over to each
 * other at chosen accesses. A schedule is two numbers. The first actor runs up to its first number,
 * the other one up to its second; then both run to their ends, the first actor first. All pairs are
 * tried. The result is judged by the script that the producer ran, not by the core.
 *
 * Both are threads, so that each has a stack; the baton lets only one run.
 */
#ifndef KMES_TESTS_EXPLORER_H
#define KMES_TESTS_EXPLORER_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kmes/tests/share.h"
#include "kmes/tests/world.h"

namespace kmes::tests {

class Run;

/* The actions of the producer. Called with the run, on the producer's thread. */
using Script = std::function<void(Run&)>;

struct Scenario {
    std::string name;
    WorldSetup setup;
    Script before;   /* before the consumer opens */
    Script prologue; /* after it has opened and drained */
    Script script;   /* scheduled against the consumer's drain and sleep */
};

/* A consumer under test. `run` drains and sleeps until Run::is_over. */
class Consumer {
  public:
    virtual ~Consumer() = default;
    virtual int open(Run& run) = 0;
    virtual void drain(Run& run) = 0;
    virtual int wait(Run& run) = 0;
};

using ConsumerFactory = std::function<std::unique_ptr<Consumer>(Run&)>;

/* One run of one schedule. */
class Run {
  public:
    explicit Run(const Scenario& scenario);

    World world;

    /* -- For scripts: emit, and record the owed events -- */
    void emit(std::uint64_t event_bytes);
    void batch(const std::vector<std::uint64_t>& sizes);
    void swap(std::uint64_t capacity_bytes, enum kmes_swap_positions positions = KMES_SWAP_KEEP);
    void nudge_all();

    /* -- For consumers -- */
    void deliver(const Delivered& event);
    void fault(const std::string& what);
    bool is_over() const { return over_ || !faults_.empty(); }
    /* For loops that must end: true if a run is far too long. */
    bool is_endless();

    /* FUTEX_WAIT: the rest of the producer's script runs while the consumer sleeps. */
    int sleep(std::uint32_t* word, std::uint32_t expected);

    /* From here on the consumer may read: it owes the events of the current buffer. */
    void begin_owing();

    /* Judges the whole run. Returns the first fault, if there is one. */
    std::optional<std::string> verdict();

    /* Set by the explorer: runs the producer to its end. */
    std::function<void()> finish_producer;

  private:
    struct Emitted {
        std::uint64_t sequence;
        std::uint64_t bytes;
        std::uint64_t end_pos; /* in its origin */
        const TestBuffer* origin;
    };

    void remember(std::uint64_t sequence, std::uint64_t event_bytes);
    bool is_owed(const Emitted& event);
    std::vector<std::uint64_t> owed_and_missing();

    std::vector<Emitted> emitted_;
    std::vector<std::uint64_t> delivered_;
    std::vector<std::string> faults_;
    const TestBuffer* owing_from_ = nullptr;
    std::uint64_t loads_ = 0;
    bool over_ = false;
    bool positions_kept_ = true;
};

struct Exploration {
    std::uint64_t runs = 0;
    std::uint64_t failed = 0;
    std::string first_fault; /* with its schedule */
};

enum class Until { kEnd, kFirstFault };

/*
 * Tries every schedule of `scenario`: with the consumer first, and with the producer first. Of the
 * first actor's numbers, tries only those in `share`.
 */
Exploration explore(const Scenario& scenario, const ConsumerFactory& make_consumer,
                    Until until = Until::kEnd, const Share& share = {});

}  // namespace kmes::tests

#endif
