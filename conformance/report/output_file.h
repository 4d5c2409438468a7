// SPDX-License-Identifier: MIT
//
// A file that is written whole or not at all: a temporary file beside it is renamed to it. A FIFO,
// a device or an open descriptor is written to and never replaced.
#ifndef KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_
#define KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/model/stop_flag.h"

namespace kmes::conformance {

// Returns the canonical path of the regular or new file that an OutputFile would replace. Returns
// nothing for a device, a FIFO, a descriptor, or a path that cannot be resolved.
std::optional<std::string> replaced_file(const std::string& path);

class OutputFile {
  public:
    // `what` names the file in errors.
    explicit OutputFile(std::string what = "report file") : what_(std::move(what)) {}
    // Removes an uncommitted file.
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    enum class Status {
        ok,
        bad_path,    // the folder does not exist, or the path is a folder or a socket: bad usage
        unwritable,  // the system does not permit it
    };

    // Follows symbolic links, as a shell's `>` does.
    // - A regular or new file: creates and removes a temporary file beside it, so that an
    //   unwritable place is known before the run.
    // - A FIFO or a device: opens it. Waits at most five seconds for the reader of a FIFO, or until
    //   `stop` is set.
    // - A path that names an open descriptor of this process (/dev/fd/N, /dev/stdout): duplicates
    //   it.
    //
    // On failure error() says in one line what is wrong.
    Status open(const std::string& path, const StopFlag* stop = nullptr);
    // For commit_new: follows no link.
    Status open_new(const std::string& path);

    // Writes everything. Replaces a regular file as a whole, with the same owner and mode. If that
    // is impossible (another owner, a mount point), overwrites it. Returns false on failure:
    // error() says why, and a file that could have been replaced is unchanged.
    bool commit(std::string_view text);
    // As commit, but does not replace an existing file: returns false, and is_taken() is true.
    bool commit_new(std::string_view text);
    bool is_taken() const { return taken_; }

    const std::string& error() const { return error_; }

  private:
    Status open_in_place(mode_t mode, const StopFlag* stop);
    Status refuse(const std::string& why);
    Status try_folder();
    bool make_temporary();
    bool write_temporary(std::string_view text);
    // Copies owner and mode of the file to be replaced; for a new file, uses the defaults. Returns
    // false if the owner cannot be kept.
    bool take_over_rights();
    bool write_over(std::string_view text);
    bool fail(const std::string& what, int error_number);
    void discard();

    std::string what_;
    std::string path_;    // as given, for errors
    std::string target_;  // after resolving its links
    std::string temporary_path_;
    std::string error_;
    int fd_ = -1;  // of the temporary file, or of the descriptor written to directly
    bool in_place_ = false;
    bool is_open_ = false;
    bool taken_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_
