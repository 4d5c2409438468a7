// SPDX-License-Identifier: MIT
//
// See switches.h. The table of mistakes is in mistakes.cc.
#include "props/suite/switches.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace kmes::props::suite {
namespace {

constexpr const char* kRunner = "conformance/kmes-conformance";
constexpr const char* kProgram = "props/suite/switched_consumer";

// Our words contain nothing that needs more than this in a shell.
std::string quoted(const std::string& word) {
    return word.find_first_of("*?[ ") == std::string::npos ? word : "'" + word + "'";
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
    return text;
}

// Returns the standard output of a command. The reader of the output judges the exit status.
std::string output_of(const std::vector<std::string>& words) {
    std::FILE* pipe = ::popen(joined(words).c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("cannot start " + words.front());
    std::string output;
    char piece[4096];
    for (std::size_t count; (count = std::fread(piece, 1, sizeof piece, pipe)) > 0;)
        output.append(piece, count);
    ::pclose(pipe);
    return output;
}

std::vector<std::string> filter_words(const std::vector<std::string>& filters) {
    std::vector<std::string> words;
    for (const std::string& filter : filters) words.insert(words.end(), {"--filter", filter});
    return words;
}

double environment_scale() {
    const char* scale = ::getenv("KMES_TIMEOUT_SCALE");
    return scale == nullptr || *scale == '\0' ? 1 : std::atof(scale);
}

}  // namespace

const Vocabulary& vocabulary() {
    static const Vocabulary made = [] {
        Vocabulary all;
        std::istringstream lines(output_of({kProgram, "--list"}));
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            Key key;
            words >> key.name;
            for (std::string word; words >> word;) key.words.push_back(word);
            if (key.words.empty()) throw std::runtime_error("a switch without words: " + line);
            if (key.name == "bug")
                all.bugs.push_back(key.words.front());
            else
                all.keys.push_back(key);
        }
        if (all.keys.empty()) throw std::runtime_error("the consumer lists no switches");
        return all;
    }();
    return made;
}

std::string Consumer::word(const std::string& key) const {
    const auto found = words.find(key);
    if (found != words.end()) return found->second;
    for (const Key& each : vocabulary().keys) {
        if (each.name == key) return each.words.front();
    }
    throw std::runtime_error("there is no switch " + key);
}

void Consumer::set(const std::string& key, const std::string& word) {
    words.erase(key);
    if (this->word(key) != word) words[key] = word;
}

std::vector<std::string> Consumer::arguments() const {
    std::vector<std::string> all;
    for (const auto& [key, word] : words) all.push_back(key + "=" + word);
    for (const std::string& bug : bugs) all.push_back("bug=" + bug);
    return all;
}

void repair(Consumer& consumer) {
    if (consumer.word("threads") != "one" || consumer.word("wait") == "waitv") return;
    const auto must_not_limit = [](const std::string& bug) {
        for (const Need& need : mistake(bug).needs) {
            if (need.key == "limit") return true;
        }
        return false;
    };
    if (std::any_of(consumer.bugs.begin(), consumer.bugs.end(), must_not_limit))
        consumer.set("wait", "waitv");
    else if (consumer.word("limit") == "none" || consumer.word("word") == "rotate")
        // A consumer that sleeps on one word after the other is seen asleep on each only once in a
        // cycle.
        consumer.set("limit", "5");
}

void make(Consumer& consumer, const Mistake& mistake) {
    consumer.bugs.push_back(mistake.name);
    for (const Need& need : mistake.needs) {
        const std::string current = consumer.word(need.key);
        if (std::find(need.words.begin(), need.words.end(), current) == need.words.end())
            consumer.set(need.key, need.words.front());
    }
    repair(consumer);
}

const Mistake& mistake(const std::string& name) {
    for (const Mistake& each : mistakes()) {
        if (each.name == name) return each;
    }
    throw std::runtime_error("there is no mistake " + name);
}

std::set<std::string> clauses_of(const Consumer& consumer) {
    std::set<std::string> clauses;
    for (const std::string& bug : consumer.bugs) {
        const Mistake& of = mistake(bug);
        clauses.insert(of.clauses.begin(), of.clauses.end());
        // If a consumer does not stop, the case only knows that the awaited event never came.
        for (const std::string& id : of.cases) clauses.insert(id.substr(0, id.find('/')));
    }
    return clauses;
}

std::vector<std::string> cases_of(const Consumer& consumer) {
    std::vector<std::string> cases;
    for (const std::string& bug : consumer.bugs) {
        for (const std::string& each : mistake(bug).cases) {
            if (std::find(cases.begin(), cases.end(), each) == cases.end()) cases.push_back(each);
        }
    }
    return cases;
}

namespace {

// The words of a run after the runner: a repetition differs only in the report.
std::vector<std::string> words_of_run(const Consumer& consumer, const RunOptions& options,
                                      const std::string& program) {
    std::ostringstream scale;
    scale << options.timeout_scale * environment_scale();
    // Exploration is a search with a time limit, tested elsewhere (conformance/explorer).
    std::vector<std::string> words{"--explore", "off", "--no-preflight", "--timeout-scale",
                                   scale.str()};
    words.insert(words.end(), options.options.begin(), options.options.end());
    for (const std::string& word : filter_words(options.filters)) words.push_back(word);
    words.insert(words.end(), {"--", program});
    for (const std::string& word : consumer.arguments()) words.push_back(word);
    return words;
}

}  // namespace

std::vector<Verdict> run_suite(const Consumer& consumer, const RunOptions& options) {
    std::vector<std::string> words{kRunner, "--report", "json"};
    for (const std::string& word : words_of_run(consumer, options, kProgram)) words.push_back(word);
    const std::string output = output_of(words);
    const nlohmann::json report = nlohmann::json::parse(output, nullptr, false);
    if (report.is_discarded())
        throw std::runtime_error("no report from: " + joined(words) + "\n" + output);
    std::vector<Verdict> verdicts;
    for (const nlohmann::json& each : report["cases"]) {
        const std::string found = each.contains("findings") ? each["findings"][0]["clause"] : "";
        verdicts.push_back({each["id"], each["verdict"], each["clause"], each["message"], found});
    }
    return verdicts;
}

namespace {

// Whether the case of a line of --list runs only with an option, which the line then names.
// Explored cases need none, and are left out: the properties run with --explore off.
bool has_to_be_asked_for(const std::string& line) {
    return line.find(" (--") != std::string::npos || line.find("/explored-") != std::string::npos;
}

}  // namespace

const std::vector<std::string>& all_case_ids() {
    static const std::vector<std::string> ids = [] {
        std::vector<std::string> all;
        std::istringstream lines(output_of({kRunner, "--list", "--level", "erratum"}));
        for (std::string line; std::getline(lines, line);) {
            if (!has_to_be_asked_for(line)) all.push_back(line.substr(0, line.find(' ')));
        }
        if (all.empty()) throw std::runtime_error("the runner lists no cases");
        return all;
    }();
    return ids;
}

std::string command(const Consumer& consumer, const RunOptions& options) {
    std::vector<std::string> words{"tools/kmes", "conformance"};
    for (const std::string& word :
         words_of_run(consumer, options, std::string("bazel-bin/") + kProgram))
        words.push_back(word);
    return "bazel build //props/suite:switched_consumer && " + joined(words);
}

}  // namespace kmes::props::suite
