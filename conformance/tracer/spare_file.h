// SPDX-License-Identifier: MIT
//
// One descriptor that is kept for files of /proc. Without it, a testee would look unreadable, or
// gone, wherever the runner has used up its descriptors (RLIMIT_NOFILE).

#ifndef CONFORMANCE_TRACER_SPARE_FILE_H_
#define CONFORMANCE_TRACER_SPARE_FILE_H_

#include <string>
#include <vector>

namespace kmes::conformance::tracing {

// Opens the descriptor, if it is not there yet. Throws std::system_error if there is none left.
void keep_spare_file();

// A file that is read at once. It takes the kept descriptor if there is no other, and gives it back
// at its end. Meanwhile no other thread can take it.
class BriefFile {
  public:
    BriefFile(const std::string& path, int flags);
    ~BriefFile();
    BriefFile(const BriefFile&) = delete;
    BriefFile& operator=(const BriefFile&) = delete;

    int fd() const { return fd_; }  // -1: the file cannot be opened; errno says why

  private:
    int fd_ = -1;
    bool has_spare_ = false;
};

// The names in a folder, without those that begin with a dot. Empty if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_SPARE_FILE_H_
