// SPDX-License-Identifier: MIT
//
// The switches of switched_consumer.c as this folder's tests draw and read them: choices that are
// all right, mistakes that each violate a clause, and one run of the conformance suite on what they
// make. Knows the runner as its users do, by its command line and its JSON report.
#ifndef KMES_PROPS_SUITE_SWITCHES_H_
#define KMES_PROPS_SUITE_SWITCHES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

namespace kmes::props::suite {

struct Key {
    std::string name;
    std::vector<std::string> words;  // the first is what holds where nothing is said
};

// What the program says of itself (`--list`).
struct Vocabulary {
    std::vector<Key> keys;
    std::vector<std::string> bugs;
};
const Vocabulary& vocabulary();

// A consumer: the words that differ from the first ones, and the mistakes.
struct Consumer {
    std::map<std::string, std::string> words;
    std::vector<std::string> bugs;

    std::string word(const std::string& key) const;
    void set(const std::string& key, const std::string& word);
    std::vector<std::string> arguments() const;
};

// Makes a combination one that a consumer can have: a single thread cannot sleep on several futex
// words but by futex_waitv, or with a time limit.
void repair(Consumer& consumer);

// One choice that a mistake needs in order to be one, or to be one that can be seen.
struct Need {
    std::string key;
    std::vector<std::string> words;  // any of these; the first is taken where it has another
    std::string reason;
};

struct Mistake {
    std::string name;
    std::vector<std::string> clauses;  // that a verdict on it may name
    std::vector<std::string> cases;    // that show it; any of them
    std::vector<Need> needs;
};

// Every mistake of the program.
const std::vector<Mistake>& mistakes();
const Mistake& mistake(const std::string& name);

// Adds a mistake to a consumer, with what it needs.
void make(Consumer& consumer, const Mistake& mistake);

struct Verdict {
    std::string id;
    std::string verdict;  // "pass", "fail", ...
    std::string clause;
    std::string message;
};

struct RunOptions {
    std::vector<std::string> options;  // of the runner, besides these
    std::vector<std::string> filters;  // none: the whole default run
    double timeout_scale = 1;          // times KMES_TIMEOUT_SCALE
};

// One run of the suite. Throws std::runtime_error if it gave no report.
std::vector<Verdict> run_suite(const Consumer& consumer, const RunOptions& options = {});

// Every case of a default run, in its order (`--list --level erratum`).
const std::vector<std::string>& all_case_ids();

// What shows it again, as a command for a shell at the top of the tree.
std::string command(const Consumer& consumer, const std::vector<std::string>& filters);

// The clauses that belong to the mistakes of this consumer, and the cases that show them.
std::set<std::string> clauses_of(const Consumer& consumer);
std::vector<std::string> cases_of(const Consumer& consumer);

// A small scale makes hangs short; all that a broken consumer can do about it is to fail more.
inline constexpr double kScaleOfBroken = 0.1;

}  // namespace kmes::props::suite

#endif  // KMES_PROPS_SUITE_SWITCHES_H_
