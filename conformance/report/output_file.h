// SPDX-License-Identifier: MIT
//
// A file that is there whole or not at all: written beside its place and renamed into it.
#ifndef KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_
#define KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_

#include <string>
#include <string_view>
#include <utility>

namespace kmes::conformance {

class OutputFile {
  public:
    // `what` names the file in errors.
    explicit OutputFile(std::string what = "report file") : what_(std::move(what)) {}
    // Removes what was not committed.
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    enum class Status {
        ok,
        bad_path,    // the folder is not there, or the path is one: bad usage
        unwritable,  // the machine does not let us
    };

    // Makes a temporary file, and removes it: a place that cannot be written is known before the
    // run. On failure error() says in one line what is wrong.
    Status open(const std::string& path);

    // Writes everything and renames it into place. False: error() says why, and the file that stood
    // there before stands there still.
    bool commit(std::string_view text);
    // The same, but a file that stands there is not replaced: false, and is_taken().
    bool commit_new(std::string_view text);
    bool is_taken() const { return taken_; }

    const std::string& error() const { return error_; }

  private:
    bool make_temporary();
    bool write(std::string_view text);
    bool fail(const std::string& what, int error_number);
    void discard();

    std::string what_;
    std::string path_;
    std::string temporary_path_;
    std::string error_;
    int fd_ = -1;
    bool is_open_ = false;
    bool taken_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_
