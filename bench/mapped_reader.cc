// SPDX-License-Identifier: MIT
//
// See mapped_reader.h.
#include "bench/mapped_reader.h"

#include <stdexcept>
#include <utility>

#include "bench/rows.h"
#include "kmes/user/double_map.h"
#include "kmes/user/libkmes_reader.h"

namespace kmes::bench {

MappedReader::MappedReader(BufferHandle memory) : memory_(std::move(memory)) {
    open();
}

MappedReader::~MappedReader() {
    kmes_reader_close(&reader_);
}

void MappedReader::map_again() {
    kmes_reader_close(&reader_);
    open();
}

void MappedReader::open() {
    struct kmes_reader_config config = {};

    config.attach_functions = {attach, identify, detach, this};
    config.platform = kmes_user_platform();
    if (kmes_reader_open(&reader_, &config) != 0) throw std::runtime_error("a reader cannot open");
}

int MappedReader::attach(void* context, __u16 cpu_id, struct kmes_mapping* mapping) {
    const BufferMemory& memory = *static_cast<MappedReader*>(context)->memory_;

    mapping->mapped_bytes = memory.mapped_bytes();
    return identify(context, cpu_id, mapping) |
           kmes_double_map(memory.metadata_fd(), memory.data_fd(), memory.capacity_bytes(), false,
                           &mapping->base);
}

int MappedReader::identify(void* context, __u16, struct kmes_mapping* mapping) {
    const BufferMemory& memory = *static_cast<MappedReader*>(context)->memory_;

    mapping->device = memory.device();
    mapping->inode = memory.inode();
    mapping->session = 0;
    return 0;
}

void MappedReader::detach(void* context, struct kmes_mapping* mapping) {
    kmes_double_unmap(mapping->base,
                      static_cast<MappedReader*>(context)->memory_->capacity_bytes());
}

ReadRing::ReadRing() {
    ProducerOptions options;

    options.capacity_bytes = kCapacityBytes;
    options.emitters = EmitterMode::kSingle;
    producer = std::make_unique<Producer>(options);
    must(producer->start_without_registry() == 0, "start");
    must(producer->attach(0, &attachment) == 0, "attach");
    reader = std::make_unique<MappedReader>(attachment.buffers[0]);
}

}  // namespace kmes::bench
