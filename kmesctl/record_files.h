// SPDX-License-Identifier: MIT
//
// The files of a recording: one, or a rotation by size and time.
#ifndef KMES_KMESCTL_RECORD_FILES_H_
#define KMES_KMESCTL_RECORD_FILES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "kmesctl/source.h"
#include "record/reader.h"
#include "record/writer.h"

namespace kmes::kmesctl {

struct RecordFilesOptions {
    std::string path;
    std::uint64_t rotate_bytes = 0;  // 0: never
    std::uint64_t rotate_ns = 0;     // 0: never
    std::uint64_t keep = 0;          // files; 0: all
};

// The functions throw a Failure of kExitFailed for an error of the file, which then ends with a
// whole block. Clocks are CLOCK_MONOTONIC, except in the header.
class RecordFiles {
  public:
    // Without rotation the file is `path`, otherwise PATH.1, PATH.2 and so on.
    RecordFiles(RecordFilesOptions options, record::FileHeader header);

    // The next items of this CPU are from this producer. Adds an item if the producer is new in the
    // file.
    void enter_session(unsigned cpu, std::uint64_t session);
    // Adds an event, and before it the loss that precedes it.
    void add(const kmes_event_view& event);
    void add_loss(const record::Loss& loss);
    // Begins the next file if this one has rotate_bytes, or is rotate_ns old.
    void rotate_if_large();
    void rotate_if_old();
    void sync();
    void close();

    std::uint64_t files() const { return number_; }
    // The number of added events, including those in files that a rotation has removed.
    std::uint64_t events() const { return events_; }
    std::uint64_t lost() const { return lost_; }
    const std::string& path() const { return path_; }

  private:
    void open_next();
    void rotate();
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

// Makes the header of a recording: the producer, and the capacity of its rings.
record::FileHeader record_header(const Source& source, std::uint64_t session);

// What the last line of a recording says of CPUs that could not be read; empty for 0.
std::string text_of_unread(unsigned cpus);

// Throws a Failure of kExitFailed if `path` exists, or cannot be created.
void require_new_file(const std::string& path);

// Opens a file for reading. Throws a Failure of kExitFailed with the reason.
void open_record(const std::string& path, record::Reader* reader);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_RECORD_FILES_H_
