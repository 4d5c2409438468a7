// SPDX-License-Identifier: MIT
//
// The failure file: made from an outcome, named, written and read. See failure_file.h.
#include "conformance/failure/failure_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "conformance/report/input_file.h"
#include "conformance/report/output_file.h"
#include "conformance/report/run_report.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr int kMaximumFilesOfACase = 1000;
constexpr std::string_view kSuffix = ".json";
constexpr mode_t kFolderMode = 0777;

std::string quoted(const std::string& path) {
    return "\"" + printable(path) + "\"";
}

bool is_folder(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Creates the folder and its parents, and adds their names. Returns an empty string, or the reason
// of the failure.
std::string make_folder(const std::string& path, std::vector<std::string>& created) {
    if (is_folder(path)) return "";
    const std::size_t slash = path.find_last_of('/');
    if (slash != std::string::npos && slash > 0) {
        const std::string why = make_folder(path.substr(0, slash), created);
        if (!why.empty()) return why;
    }
    if (::mkdir(path.c_str(), kFolderMode) == 0) {
        created.push_back(path);
        return "";
    }
    if (errno == EEXIST && is_folder(path)) return "";
    return fmt::format("the folder {} of --save cannot be made: {}", quoted(path),
                       std::strerror(errno));
}

}  // namespace

bool same_finding(const Finding& a, const Finding& b) {
    return std::tie(a.code, a.clause, a.message, a.cpu, a.sequence, a.line) ==
           std::tie(b.code, b.clause, b.message, b.cpu, b.sequence, b.line);
}

FailureFile make_failure_file(const Case& the_case, const StageSettings& settings,
                              const CaseOutcome& outcome, std::string stepper) {
    FailureFile file;
    file.suite = kSuiteName;
    file.case_id = the_case.id;
    file.level = the_case.level;
    file.clause = outcome.clause;
    file.message = outcome.message;
    file.settings = settings;
    file.stepper = std::move(stepper);
    if (outcome.record) file.record = *outcome.record;
    if (!outcome.record) file.record.history.complete = false;
    file.settings.schedule = file.record.schedule;
    return file;
}

ReadFailure read_failure_file(const std::string& path) {
    const InputFile file = read_input_file(path, kMaximumFailureFileBytes);
    ReadFailure read;
    read.error = file.error;
    if (!file.error.empty()) return read;
    read = failure_from_json(file.text);
    if (!read.error.empty()) read.error = printable(path) + ": " + read.error;
    return read;
}

std::string failure_file_name(std::string_view case_id) {
    std::string name;
    for (const char byte : case_id) {
        const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_';
        name.push_back(plain ? byte : '-');
    }
    // The name is never a hidden file or a parent folder.
    if (name.empty() || name.front() == '.') name.insert(0, "case");
    return name + std::string(kSuffix);
}

std::string write_failure_file(const FailureFile& file, const std::string& path) {
    OutputFile output("failure file");
    if (output.open(path) != OutputFile::Status::ok) return output.error();
    return output.commit(to_json(file)) ? "" : output.error();
}

std::string FailureFolder::open(const std::string& folder) {
    folder_ = folder;
    while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
    if (folder_.empty()) return "the name of the folder of --save is empty";
    if (std::string why = make_folder(folder_, created_); !why.empty()) return why;
    OutputFile probe("failure file");
    if (probe.open_new(folder_ + "/probe.json") == OutputFile::Status::ok) return "";
    return fmt::format("the folder {} of --save cannot be written to: {}", quoted(folder_),
                       probe.error());
}

FailureFolder::~FailureFolder() {
    // A folder with a file in it stays.
    for (auto folder = created_.rbegin(); folder != created_.rend(); ++folder)
        ::rmdir(folder->c_str());
}

FailureFolder::Saved FailureFolder::save(const FailureFile& file) const {
    const std::string text = to_json(file);
    const std::string name = failure_file_name(file.case_id);
    const std::string stem = name.substr(0, name.size() - kSuffix.size());
    for (int number = 1; number <= kMaximumFilesOfACase; ++number) {
        const std::string path = number == 1
                                     ? fmt::format("{}/{}", folder_, name)
                                     : fmt::format("{}/{}.{}{}", folder_, stem, number, kSuffix);
        if (::access(path.c_str(), F_OK) == 0) continue;
        OutputFile output("failure file");
        if (output.open_new(path) == OutputFile::Status::ok && output.commit_new(text))
            return {path, ""};
        if (!output.is_taken()) return {"", output.error()};
    }
    return {"", fmt::format("the folder {} has {} files of the case {} already", quoted(folder_),
                            kMaximumFilesOfACase, printable(file.case_id))};
}

}  // namespace kmes::conformance
