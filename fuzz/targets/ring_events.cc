// SPDX-License-Identifier: MIT
//
// See ring_events.h.
#include "fuzz/targets/ring_events.h"

#include <utility>

#include "fuzz/fail.h"
#include "kmes/user/libkmes_reader.h"

namespace kmes::fuzz {

RingEvents::RingEvents(Producer* producer, std::uint16_t cpu) : producer_(producer), cpu_(cpu) {
    open();
}

RingEvents::RingEvents(Producer* producer, std::uint16_t cpu, int metadata_fd, int data_fd,
                       std::uint64_t capacity_bytes)
    : producer_(producer), cpu_(cpu), passed_(metadata_fd, data_fd, capacity_bytes) {
    open();
}

RingEvents::~RingEvents() {
    kmes_reader_close(&reader_);
}

void RingEvents::open() {
    kmes_reader_config config = {};

    config.attach_functions = {attach, identify, detach, this};
    config.platform = kmes_user_platform();
    config.cpu_id = cpu_;
    expect_equal(kmes_reader_open(&reader_, &config), 0, "the result of kmes_reader_open");
}

int RingEvents::identify(void* context, __u16 cpu, kmes_mapping* mapping) {
    Attachment attachment;
    const int error = static_cast<RingEvents*>(context)->producer_->inspect(cpu, &attachment);

    if (error) return error;
    mapping->device = attachment.buffers[0]->device();
    mapping->inode = attachment.buffers[0]->inode();
    mapping->session = attachment.session;
    return 0;
}

int RingEvents::attach(void* context, __u16 cpu, kmes_mapping* mapping) {
    auto* self = static_cast<RingEvents*>(context);
    Attachment attachment;
    const int error = self->producer_->inspect(cpu, &attachment);

    if (error) return error;
    const BufferMemory& memory = *attachment.buffers[0];
    ConsumerMapping mapped =
        self->passed_.base()
            ? std::exchange(self->passed_, ConsumerMapping())
            : ConsumerMapping(memory.metadata_fd(), memory.data_fd(), memory.capacity_bytes());

    mapping->base = mapped.base();
    mapping->mapped_bytes = mapped.mapped_bytes();
    mapping->owner = new ConsumerMapping(std::move(mapped));
    return identify(context, cpu, mapping);
}

void RingEvents::detach(void*, kmes_mapping* mapping) {
    delete static_cast<ConsumerMapping*>(mapping->owner);
}

bool RingEvents::next(RingEvent* event) {
    kmes_event_view view;
    const int found = kmes_reader_next(&reader_, room_, sizeof(room_), &view);

    if (found != KMES_READ_EVENT) {
        expect_equal(found, static_cast<int>(KMES_READ_EMPTY), "the result of kmes_reader_next");
        return false;
    }
    event->type.assign(reinterpret_cast<const char*>(view.type), view.type_len);
    event->payload.assign(reinterpret_cast<const char*>(view.payload), view.payload_len);
    event->sequence = view.sequence;
    event->lost_before = view.lost_before;
    return true;
}

}  // namespace kmes::fuzz
