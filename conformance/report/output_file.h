// SPDX-License-Identifier: MIT
//
// A file that is there whole or not at all: written beside its place and renamed into it. What is
// no regular file (a FIFO, a device, an open descriptor) is written to and never replaced.
#ifndef KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_
#define KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "conformance/model/stop_flag.h"

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
        bad_path,    // the folder is not there, or the path is a folder or a socket: bad usage
        unwritable,  // the machine does not let us
    };

    // Follows symbolic links, as a shell's `>` does. For a regular file, or none: makes a temporary
    // file beside it and removes it, so that a place that cannot be written is known before the
    // run. Opens a FIFO or a device; of a path that names an open descriptor of this process
    // (/dev/fd/N, /dev/stdout) it takes a duplicate. Waits five seconds for the reader of a FIFO,
    // at most until `stop` is set. On failure error() says in one line what is wrong.
    Status open(const std::string& path, const StopFlag* stop = nullptr);
    // For commit_new: follows no link.
    Status open_new(const std::string& path);

    // Writes everything. A regular file is replaced whole by one of the same owner and mode; where
    // this is not possible (another owner, a mount point) it is written over. False: error() says
    // why, and the old file is unchanged if it could be replaced.
    bool commit(std::string_view text);
    // The same, but an existing file is not replaced: false, and is_taken().
    bool commit_new(std::string_view text);
    bool is_taken() const { return taken_; }

    const std::string& error() const { return error_; }

  private:
    // Where the links lead to. Ends at a link of procfs: only the kernel can follow that.
    void follow_links();
    Status open_in_place(mode_t mode, const StopFlag* stop);
    Status refuse(const std::string& why);
    Status try_folder();
    bool make_temporary();
    bool write_temporary(std::string_view text);
    // Owner and mode of the file that is to be replaced, else those of any new file. False: the
    // owner cannot be kept.
    bool take_over_rights();
    bool write_over(std::string_view text);
    bool fail(const std::string& what, int error_number);
    void discard();

    std::string what_;
    std::string path_;    // as it was given, for errors
    std::string target_;  // where its links lead to
    std::string temporary_path_;
    std::string error_;
    int fd_ = -1;  // of the temporary file, or of what is written to in its place
    bool in_place_ = false;
    bool is_open_ = false;
    bool taken_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_OUTPUT_FILE_H_
