// SPDX-License-Identifier: MIT
//
// Reads the events of a record file (docs/record-format.md), so that the stage can emit them:
// --stream. Treats the file as hostile.
#ifndef KMES_CONFORMANCE_PLAY_RECORDED_STREAM_H_
#define KMES_CONFORMANCE_PLAY_RECORDED_STREAM_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/model/event_spec.h"
#include "record/reader.h"

namespace kmes::conformance {

// One line that names the file and its fault.
class StreamError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Reads the events of a file in order. Functions throw StreamError.
class RecordedStream {
  public:
    // The limit of one case, because each event stays in memory until the verdict.
    static constexpr std::uint64_t kMostEvents = 100'000;
    static constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
    // A higher CPU counts as its number modulo this one.
    static constexpr std::uint32_t kMostCpus = 64;

    explicit RecordedStream(const std::string& path);

    struct Recorded {
        std::uint32_t cpu = 0;  // below kMostCpus
        bool has_other_cpu = false;
        EventSpec spec;
    };
    // Reads the next event. Returns false at the end of the file.
    bool next(Recorded* recorded);

  private:
    Recorded check(const record::Item& item) const;

    const std::string path_;
    record::Reader reader_;
    record::Block block_;
    record::ItemCursor items_{{}};
    std::uint64_t events_ = 0;
};

// Facts about the part of a file that a case plays.
struct StreamFacts {
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
    std::uint64_t largest_bytes = 0;
    std::uint32_t cpus = 0;       // the highest CPU, plus one
    bool has_other_cpus = false;  // some events were recorded on CPUs from kMostCpus on
    bool has_more = false;        // the file has more events
};

// The part itself, so that a file that changes meanwhile cannot differ from its facts.
struct StreamPart {
    StreamFacts facts;
    std::vector<RecordedStream::Recorded> events;
};
StreamPart read_stream_part(const std::string& path);

// Reads the whole file. Returns an empty string if it has at least one event and all can be played.
std::string check_stream(const std::string& path);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_RECORDED_STREAM_H_
