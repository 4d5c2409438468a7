// SPDX-License-Identifier: MIT
// A file or a folder that is whole, or does not exist.
#ifndef KMES_KMESCTL_NEW_OUTPUT_H_
#define KMES_KMESCTL_NEW_OUTPUT_H_

#include <string>

namespace kmes::kmesctl {

// The output has a temporary name in its folder, `.kmesctl-XXXXXX`, until commit() renames it. The
// process may be killed at any time: no part of an output ever has the final name. Only the owner
// can read it. If something fails, the functions throw a Failure of kExitFailed with the reason.
class NewOutput {
  public:
    enum class Kind { file, folder };

    // Fails if `path` exists.
    NewOutput(std::string path, Kind kind);
    // Removes an output that is not committed.
    ~NewOutput();
    NewOutput(const NewOutput&) = delete;
    NewOutput& operator=(const NewOutput&) = delete;

    const std::string& temporary_path() const { return temporary_path_; }
    // The descriptor of the file, to be written to; -1: a folder.
    int fd() const { return fd_; }
    // Gives the output its name. Fails if something else has got this name since.
    void commit();

  private:
    [[noreturn]] void refuse(int error) const;
    // Returns 0, or errno.
    int rename_to_new() const;

    const std::string path_;
    std::string temporary_path_;
    int fd_ = -1;
    bool is_committed_ = false;
};

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_NEW_OUTPUT_H_
