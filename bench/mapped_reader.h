// SPDX-License-Identifier: MIT
//
// A reader of a buffer in this process, with a separate read-only mapping as a consumer in another
// process would have it.
#ifndef KMES_BENCH_MAPPED_READER_H
#define KMES_BENCH_MAPPED_READER_H

#include <memory>

#include "kmes/reader.h"
#include "kmes/user/memory.h"
#include "kmes/user/producer.h"

namespace kmes::bench {

class MappedReader {
  public:
    // Maps the buffer and begins at its tail. Throws std::runtime_error.
    explicit MappedReader(BufferHandle memory);
    ~MappedReader();
    MappedReader(const MappedReader&) = delete;
    MappedReader& operator=(const MappedReader&) = delete;

    // Replaces the mapping, so that the next read takes its page faults.
    void map_again();

    struct kmes_reader* operator->() { return &reader_; }
    struct kmes_reader* get() { return &reader_; }

  private:
    static int attach(void* context, __u16 cpu_id, struct kmes_mapping* mapping);
    static int identify(void* context, __u16 cpu_id, struct kmes_mapping* mapping);
    static void detach(void* context, struct kmes_mapping* mapping);
    void open();

    BufferHandle memory_;
    struct kmes_reader reader_ = {};
};

// A producer of one CPU with a single emitter, and a reader of its ring of kCapacityBytes.
struct ReadRing {
    // Throws std::runtime_error.
    ReadRing();

    std::unique_ptr<Producer> producer;
    Attachment attachment;
    std::unique_ptr<MappedReader> reader;
};

}  // namespace kmes::bench

#endif
