// SPDX-License-Identifier: MIT
//
// The files of a recording: one, or a rotation by size and time.
#ifndef KMES_KMESCTL_RECORD_FILES_H_
#define KMES_KMESCTL_RECORD_FILES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "record/reader.h"
#include "record/writer.h"

namespace kmes::kmesctl {

struct RecordFilesOptions {
    std::string path;
    std::uint64_t rotate_bytes = 0;  // 0: never
    std::uint64_t rotate_ns = 0;     // 0: never
    std::uint64_t keep = 0;          // files; 0: all
};

// Functions throw a Failure of kExitFailed for an error of the file, which then ends with a whole
// block. Clocks are CLOCK_MONOTONIC, but for the header.
class RecordFiles {
  public:
    // Without rotation the file is `path`, else PATH.1, PATH.2 and so on.
    RecordFiles(RecordFilesOptions options, record::FileHeader header);

    // The next items of this CPU are of this producer. Adds an item where that is news in the file.
    void enter_session(unsigned cpu, std::uint64_t session);
    // An event, after what was lost before it.
    void add(const kmes_event_view& event);
    void add_loss(const record::Loss& loss);
    // Begins the next file where it is time.
    void rotate_if_due();
    void sync();
    void close();

    std::uint64_t files() const { return number_; }
    // That were added, also those of files that a rotation has removed.
    std::uint64_t events() const { return events_; }
    std::uint64_t lost() const { return lost_; }
    const std::string& path() const { return path_; }

  private:
    void open_next();
    void check(int error);

    const RecordFilesOptions options_;
    record::FileHeader header_;
    record::Writer writer_;
    std::string path_;
    std::deque<std::string> kept_;
    std::vector<std::uint64_t> sessions_;  // of each CPU, in this file
    std::uint64_t number_ = 0;
    std::uint64_t opened_ns_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t lost_ = 0;
};

// The header of a recording: the producer, and the capacity of its rings.
record::FileHeader record_header(unsigned cpus, std::uint64_t session);

// A Failure of kExitFailed where `path` exists, or cannot be created.
void require_new_file(const std::string& path);

// Opens a file for reading; a Failure of kExitFailed with the reason.
void open_record(const std::string& path, record::Reader* reader);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_RECORD_FILES_H_
