// SPDX-License-Identifier: MIT
//
// The switches of switched_consumer.c for the tests of this folder: correct choices, and mistakes
// that violate a clause each. Also a run of the conformance suite on such a consumer. Uses the
// runner as its users do, by its command line and its JSON report.
#ifndef KMES_PROPS_SUITE_SWITCHES_H_
#define KMES_PROPS_SUITE_SWITCHES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

namespace kmes::props::suite {

struct Key {
    std::string name;
    std::vector<std::string> words;  // the first is the default
};

// The output of the program's `--list`.
struct Vocabulary {
    std::vector<Key> keys;
    std::vector<std::string> bugs;
};
const Vocabulary& vocabulary();

// A consumer: the words that differ from the defaults, and the mistakes.
struct Consumer {
    std::map<std::string, std::string> words;
    std::vector<std::string> bugs;

    std::string word(const std::string& key) const;
    void set(const std::string& key, const std::string& word);
    std::vector<std::string> arguments() const;
};

// Makes a combination possible: a single thread can sleep on several futex words only by
// futex_waitv or with a timeout.
void repair(Consumer& consumer);

// One choice that a mistake needs to be a mistake, or to be visible.
struct Need {
    std::string key;
    std::vector<std::string> words;  // any of these; the first replaces another word
    std::string reason;
};

struct Mistake {
    std::string name;
    std::vector<std::string> clauses;  // that a verdict may name
    std::vector<std::string> cases;    // any of them shows the mistake
    std::vector<Need> needs;
};

// Every mistake of the program.
const std::vector<Mistake>& mistakes();
const Mistake& mistake(const std::string& name);

// Adds a mistake to a consumer, with the choices that it needs.
void make(Consumer& consumer, const Mistake& mistake);

struct Verdict {
    std::string id;
    std::string verdict;  // "pass", "fail", ...
    std::string clause;
    std::string message;
    std::string found_clause;  // of the first finding alone; empty: none
};

struct RunOptions {
    std::vector<std::string> options;  // further options of the runner
    std::vector<std::string> filters;  // none: the whole default run
    double timeout_scale = 1;          // times KMES_TIMEOUT_SCALE
};

// One run of the suite. Throws std::runtime_error if it gave no report.
std::vector<Verdict> run_suite(const Consumer& consumer, const RunOptions& options = {});

// Every case of a default run, in its order (`--list --level erratum`).
const std::vector<std::string>& all_case_ids();

// Returns a shell command that repeats the run, for the top of the tree.
std::string command(const Consumer& consumer, const RunOptions& options);

// The clauses of this consumer's mistakes; and the cases that show them.
std::set<std::string> clauses_of(const Consumer& consumer);
std::vector<std::string> cases_of(const Consumer& consumer);

// A small scale makes hangs short. On a loaded machine a case may then fail for its time limit
// alone, and no run without the mistake is compared. So these tests show that a broken consumer
// fails, and not that only its mistake fails it; right_consumers_test runs at the full scale.
inline constexpr double kScaleOfBroken = 0.1;

}  // namespace kmes::props::suite

#endif  // KMES_PROPS_SUITE_SWITCHES_H_
