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
    // Without rotation the file is `path`, otherwise PATH.1, PATH.2 and so on. A rotation continues
    // after the last PATH.N that exists, and replaces no file. Recordings among those files count
    // for `keep`. Throws if another recorder still writes to one of them.
    RecordFiles(RecordFilesOptions options, record::FileHeader header);

    // The producer has this number of CPUs from now on.
    void set_cpus(unsigned cpus);
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

    // Returns a description of the events in the files, for example "2 events in 1 file". It also
    // has the events of removed files, and those of a block that could not be written.
    std::string text_of_events() const;
    // The number of added events, whether or not a file still has them.
    std::uint64_t events() const { return events_; }
    // Returns false if a file was removed while the recorder wrote to it.
    bool is_whole() const { return files_lost_ == 0; }
    std::uint64_t lost() const { return lost_; }
    const std::string& path() const { return path_; }

  private:
    struct File {
        std::string path;
        std::uint64_t events = 0;  // of a file that is complete
        bool is_earlier = false;   // of an earlier recording, whose events do not count
    };

    bool rotates() const { return options_.rotate_bytes != 0 || options_.rotate_ns != 0; }
    void find_earlier_files();
    void open_next();
    void remove_oldest();
    void rotate();
    void finish_file();
    void check(int error);

    const RecordFilesOptions options_;
    record::FileHeader header_;
    record::Writer writer_;
    std::string path_;
    std::deque<File> kept_;                // the last one is that of writer_
    std::vector<std::uint64_t> sessions_;  // of each CPU, in this file
    std::uint64_t number_ = 0;
    std::uint64_t opened_ns_ = 0;
    std::uint64_t events_ = 0;  // that were added
    std::uint64_t lost_ = 0;
    // Files that --keep has removed, and files that another process removed while they were
    // written.
    std::uint64_t files_removed_ = 0;
    std::uint64_t events_removed_ = 0;
    std::uint64_t earlier_removed_ = 0;  // files of earlier recordings
    std::uint64_t files_lost_ = 0;
    std::uint64_t events_lost_ = 0;
};

// Makes the header of a recording: the producer, and the capacity of its rings.
record::FileHeader record_header(const Source& source, std::uint64_t session);

// Returns the part of a recording's last line about CPUs that could not be read; empty for 0.
std::string text_of_unread(unsigned cpus);

// Throws a Failure of kExitFailed if `path` exists, or cannot be created.
void require_new_file(const std::string& path);

// Opens a file for reading. Throws a Failure of kExitFailed with the reason.
void open_record(const std::string& path, record::Reader* reader);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_RECORD_FILES_H_
