// SPDX-License-Identifier: MIT
//
// The consumers: the reference reader in its four forms, each on its own stack. Checks all their
// accesses and deliveries (machine.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "props/machine/machine.h"
#include "props/script/form.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kLargestRoom = 64ull << 20;
// The most accesses of a consumer between two deliveries or sleeps. Those for the bytes of a script
// are added.
constexpr std::uint64_t kMostAccessesOfAConsumer = 400000;
constexpr std::uint64_t kForeignInode = 1ull << 40;
constexpr std::size_t kSequenceAt = 16;  // in a header of every form
constexpr int kErrorAgain = -11, kErrorTooManyFiles = -24, kErrorInterrupted = -4;
constexpr int kErrorCancelled = -125, kErrorMessageSize = -90, kErrorTimedOut = -110;

// The consumers request different timeouts or limits, so that the test sees which one is in effect
// (E12).
constexpr std::uint64_t kTimeouts[kMaxConsumers] = {KMES_NO_TIMEOUT, 50000000, 150000000,
                                                    KMES_NO_TIMEOUT};
constexpr std::uint64_t kSharedLimits[kMaxConsumers] = {0, 0, 0, 7000000};

std::uint64_t sleep_limit(const Consumer& consumer) {
    const bool is_run = consumer.settings[Key::form] == 3;
    const std::uint64_t asked = is_run ? KMES_NO_TIMEOUT : kTimeouts[consumer.number];
    if (consumer.settings[Key::sharing] == 0) return asked;
    const std::uint64_t shared = kSharedLimits[consumer.number];
    return std::min<std::uint64_t>(asked, shared ? shared : 100000000);
}

std::uint64_t number_at(const std::string& bytes, std::size_t at, int length) {
    std::uint64_t value = 0;
    for (int i = length - 1; i >= 0; i--)
        value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
}

}  // namespace

void Machine::make_consumers() {
    for (const Operation& settings : script_.readers()) {
        auto consumer = std::make_unique<Consumer>();
        consumer->machine = this;
        consumer->number = static_cast<unsigned>(settings[Key::consumer]);
        consumer->settings = settings;
        consumer->platform.context = consumer.get();
        consumer->platform.sleep = on_sleep;
        consumers_.push_back(std::move(consumer));
    }
}

Consumer* Machine::consumer_of(std::uint64_t number) {
    for (const auto& consumer : consumers_)
        if (consumer->number == number) return consumer.get();
    return nullptr;
}

void Machine::start_fiber(Consumer& consumer) {
    consumer.room.resize(consumer.settings[Key::room]);
    consumer.fiber =
        std::make_unique<Fiber>([this, &consumer] { until_stop([&] { live(consumer); }); });
    consumer.state = ConsumerState::running;
}

// Removes a consumer at any point, as if its process was killed. A new one may then begin.
void Machine::stop_fiber(Consumer& consumer) {
    if (!consumer.fiber) return;
    if (!consumer.fiber->has_ended()) {
        is_cancelling_ = true;
        consumer_ = &consumer;
        if (consumer.fiber->has_begun()) resume(consumer.flow, *consumer.fiber, 0);
        consumer_ = nullptr;
        is_cancelling_ = false;
    }
    const bool was_attached = consumer.is_opened;
    kmes_reader_close(&consumer.reader);
    kmes_reader_close(&consumer.reader);  // does nothing if it is closed
    copy_wake_requests();
    if (was_attached && consumer.reader.mapping.base)
        fail("attach", "kmes_reader_close", "a closed reader still has its mapping");
    Consumer fresh;
    fresh.machine = this;
    fresh.number = consumer.number;
    fresh.settings = consumer.settings;
    fresh.platform = consumer.platform;
    consumer = std::move(fresh);
    consumer.platform.context = &consumer;
}

// Runs the consumer for `budget` accesses, or until it sleeps or has nothing to do.
void Machine::run_consumer(Consumer& consumer, std::uint64_t budget) {
    if (!consumer.fiber) start_fiber(consumer);
    // If accesses are not reported, the buffers that it reads are not known.
    if (!kIsHooked &&
        std::any_of(rings_.begin(), rings_.end(), [](const auto& ring) { return ring->is_poked; }))
        consumer.is_misled = true;
    if (consumer.fiber->has_ended()) return;
    consumer_ = &consumer;
    Task* const task = std::exchange(task_, nullptr);
    resume(consumer.flow, *consumer.fiber, budget);
    task_ = task;
    copy_wake_requests();
    consumer_ = nullptr;
    leave_if_failed();
}

// If accesses are not reported, the page itself is the only source for the stores to need_wake.
void Machine::copy_wake_requests() {
    for (std::size_t i = 0; !kIsHooked && i < rings_.size(); i++)
        model_.buffers[i].page[kNeedWakeAt] =
            static_cast<char>(*rings_[i]->buffer.shared.need_wake);
}

// The life of a consumer: it opens, drains and sleeps. After an error it is idle until the script
// runs it again.
void Machine::live(Consumer& consumer) {
    for (;;) {
        int error = open(consumer);
        while (!error) {
            error = consumer.settings[Key::form] == 3 ? run_reader(consumer) : drain(consumer);
            if (error == KMES_READ_EMPTY) {
                error = kmes_reader_wait(&consumer.reader, kTimeouts[consumer.number]);
                if (error == 1 || error == kErrorInterrupted || error == kErrorTimedOut) error = 0;
            }
            if (is_cancelling_) throw Stop{};
            if (!error) continue;
            // After an error of attach, or corrupt content: the position stays, and it tries again.
            stand_idle(consumer, error);
            error = 0;
        }
        stand_idle(consumer, error);
    }
}

void Machine::stand_idle(Consumer& consumer, int error) {
    const bool is_excused = consumer.is_misled || error == kErrorTooManyFiles ||
                            (error == kErrorAgain && model_.now().is_boot);
    if (!is_excused)
        fail("reader-result", "5.1.8, E7",
             "consumer " + std::to_string(consumer.number) + " ended with the error " +
                 std::to_string(error));
    consumer.last_error = error;
    consumer.state = ConsumerState::idle;
    consumer.accesses = 0;
    Fiber::pause();
    if (is_cancelling_) throw Stop{};
    consumer.state = ConsumerState::running;
}

int Machine::open(Consumer& consumer) {
    kmes_reader_config config{};
    config.attach_functions = {on_attach, on_identify, on_detach, &consumer};
    config.platform = &consumer.platform;
    config.sharing = consumer.settings[Key::sharing] == 1 ? KMES_SHARED : KMES_EXCLUSIVE;
    config.shared_limit_ns = kSharedLimits[consumer.number];
    config.spin_looks = static_cast<__u32>(consumer.settings[Key::spin]);
    config.stop_on_corrupt = consumer.settings[Key::stop] == 1;
    config.cpu_id = static_cast<__u16>(settings_[Key::cpu]);
    consumer.inode = 0;
    const int error = kmes_reader_open(&consumer.reader, &config);
    consumer.is_opened = error == 0;
    if (!error && !consumer.is_misled) check_start(consumer);
    return error;
}

// 5.1.9: what is lost after the attach is counted, and nothing that was gone before. The open has
// just loaded write_pos, and the tail if there was an event, so the ring is as the reader saw it.
void Machine::check_start(Consumer& consumer) {
    const kmes_buffer& buffer = rings_[consumer.reader.mapping.inode - kInodeOfFirst]->buffer;
    const std::uint64_t tail = *buffer.shared.tail_pos, end = *buffer.shared.write_pos;
    consumer.is_last_known = tail < end || (end == 0 && consumer.reader.generation == 1);
    if (tail < end) {
        const __u8* oldest = buffer.shared.data + (tail & buffer.mask);
        std::memcpy(&consumer.last, oldest + kSequenceAt, sizeof(consumer.last));
        consumer.last--;
    }
    const kmes_reader_place place = kmes_reader_get_place(&consumer.reader);
    if (place.is_known == consumer.is_last_known && place.last_sequence == consumer.last) return;
    fail("exact-loss", "5.1.9",
         "consumer " + std::to_string(consumer.number) + " counts from event " +
             std::to_string(place.last_sequence) + (place.is_known ? "" : " (unknown)") +
             "; expected " + std::to_string(consumer.last) +
             (consumer.is_last_known ? "" : " (unknown)"));
}

int Machine::drain(Consumer& consumer) {
    switch (consumer.settings[Key::form]) {
        case 0:
            return drain_copies(consumer);
        case 1:
            return drain_in_place(consumer);
        default:
            return drain_bulk(consumer);
    }
}

// -EMSGSIZE: nothing is consumed, and `needed` bytes of room are required.
void Machine::make_room(Consumer& consumer, std::uint64_t needed) {
    if (needed <= consumer.room.size() || needed > kLargestRoom)
        fail("reader-result", "kmes_reader_next",
             "-EMSGSIZE says " + std::to_string(needed) + " bytes where there are " +
                 std::to_string(consumer.room.size()));
    consumer.room.resize(needed);
}

int Machine::drain_copies(Consumer& consumer) {
    for (;;) {
        kmes_event_view view{};
        const int found =
            kmes_reader_next(&consumer.reader, consumer.room.data(), consumer.room.size(), &view);
        if (found == kErrorMessageSize)
            make_room(consumer, view.event_size);
        else if (found == KMES_READ_EVENT)
            deliver(consumer, view, consumer.room.data());
        else
            return found;
    }
}

// Uses the event in the ring, byte by byte, as a consumer does that processes it there.
bool Machine::copy_in_place(Consumer& consumer, const kmes_event_view& view, std::string* bytes) {
    const std::uint8_t* from = view.type - KMES_EVENT_FIXED_BYTES;
    const Ring* ring = nullptr;
    std::size_t index;
    if (!(ring = ring_containing(from, &index)) || view.event_size > ring->buffer.capacity ||
        !ring->memory.contains(from + view.event_size - 1) ||
        view.payload + view.payload_len != from + view.event_size ||
        view.header_size + view.payload_len != view.event_size ||
        KMES_EVENT_FIXED_BYTES + view.type_len > view.header_size)
        fail("containment", "E6, E7", "a peek shows bytes outside of the mapping");
    bytes->resize(view.event_size);
    for (std::uint64_t done = 0; done < view.event_size; done += 8) {
        const std::uint64_t piece = std::min<std::uint64_t>(8, view.event_size - done);
        if (kIsHooked)
            on_access({KMES_ORDER_READ_DATA, KMES_ORDER_KIND_copy_out, from + done, piece});
        std::memcpy(bytes->data() + done, from + done, piece);
    }
    if ((consumer.delivered & 1) && !kmes_reader_peek_is_whole(&consumer.reader)) {
        if (kmes_reader_release(&consumer.reader))
            fail("torn", "E6",
                 "kmes_reader_release returned true after kmes_reader_peek_is_whole had returned "
                 "false");
        return false;
    }
    return true;
}

int Machine::drain_in_place(Consumer& consumer) {
    for (;;) {
        kmes_event_view view{};
        std::string bytes;
        const int found = kmes_reader_peek(&consumer.reader, &view);
        if (found != KMES_READ_EVENT) return found;
        if (!copy_in_place(consumer, view, &bytes)) continue;
        if (!kmes_reader_release(&consumer.reader)) continue;
        deliver(consumer, view, reinterpret_cast<const std::uint8_t*>(bytes.data()));
        if (kmes_reader_release(&consumer.reader))
            fail("doubled", "E6", "an event is released twice");
    }
}

int Machine::drain_bulk(Consumer& consumer) {
    for (;;) {
        kmes_bulk bulk{};
        __u32 needed = 0;
        const int found = kmes_reader_bulk(&consumer.reader, consumer.room.data(),
                                           consumer.room.size(), &bulk, &needed);
        if (found == kErrorMessageSize) {
            make_room(consumer, needed);
            continue;
        }
        if (found != KMES_READ_EVENT) return found;
        kmes_event_view view{};
        while (kmes_bulk_next(&consumer.reader, &bulk, &view)) {
            const std::uint8_t* bytes = view.type - KMES_EVENT_FIXED_BYTES;
            if (bytes < consumer.room.data() ||
                bytes + view.event_size > consumer.room.data() + consumer.room.size())
                fail("containment", "kmes_bulk_next", "an event is outside of the reader's room");
            deliver(consumer, view, bytes);
        }
    }
}

int Machine::on_event(void* context, const kmes_event_view* view) {
    auto* consumer = static_cast<Consumer*>(context);
    consumer->machine->deliver(*consumer, *view, consumer->room.data());
    return 0;
}

int Machine::run_reader(Consumer& consumer) {
    for (;;) {
        const int error = kmes_reader_run(&consumer.reader, consumer.room.data(),
                                          consumer.room.size(), on_event, &consumer);
        if (error != kErrorMessageSize) return error ? error : kErrorInterrupted;
        consumer.room.resize(consumer.room.size() * 2);
        if (consumer.room.size() > kLargestRoom)
            fail("reader-result", "kmes_reader_run", "no room is large enough");
    }
}

// 5.1.8.1 step 6: an event must be whole, published, in order, delivered once, and with the exact
// loss before it.
void Machine::deliver(Consumer& consumer, const kmes_event_view& view, const std::uint8_t* bytes) {
    consumer.accesses = 0;
    consumer.delivered++;
    if (consumer.is_misled) return;
    const std::string who =
        "consumer " + std::to_string(consumer.number) + ": event " + std::to_string(view.sequence);
    const ModelRecord* record = model_.record(view.sequence);
    if (!record || !record->bytes)
        fail("publication", "5.1.8.1 step 4, E7", who + " was never emitted");
    if (!record->is_published)
        fail("publication", "5.1.7 step 8, E20", who + " is delivered before it is published");
    const std::string& right = *record->bytes;
    if (view.event_size != right.size() || std::memcmp(bytes, right.data(), right.size()) != 0)
        fail("torn", "5.1.8.1 step 5, E4, E6", who + " is torn");
    const std::uint64_t header = number_at(right, 4, 4);
    // In place, the pointers lead into the ring, whose bytes may have changed by now (E6).
    const bool is_copy = consumer.settings[Key::form] != 1;
    if (view.header_size != header || view.timestamp != number_at(right, 8, 8) ||
        view.cpu_id != number_at(right, 24, 2) || view.origin_class != number_at(right, 26, 1) ||
        view.type_len != number_at(right, kTypeLenAt, 2) ||
        view.payload_len != right.size() - header ||
        (is_copy && (view.type != bytes + kFixedBytes || view.payload != bytes + header)))
        fail("torn", "event model, Event header", who + " is shown with another header");
    if (view.sequence <= consumer.last)
        fail("delivery-order", "5.1.8.3 step 5, 5.1.9, E21",
             who + " after " + std::to_string(consumer.last));
    const std::uint64_t lost = consumer.is_last_known ? view.sequence - consumer.last - 1 : 0;
    if (view.lost_before != lost)
        fail("exact-loss", "5.1.9",
             who + ": " + std::to_string(view.lost_before) + " lost before it, and not " +
                 std::to_string(lost));
    check_gap(consumer, view.sequence);
    consumer.lost += lost;
    result_.seen.lost += lost;
    consumer.last = view.sequence;
    consumer.is_last_known = true;
    result_.deliveries++;
}

// Events that are passed over must no longer exist.
void Machine::check_gap(Consumer& consumer, std::uint64_t sequence) {
    const std::size_t index = consumer.reader.mapping.inode - kInodeOfFirst;
    if (index >= rings_.size()) return;
    for (const ModelEvent& event : model_.buffers[index].events) {
        if (event.sequence >= sequence) return;
        if (event.sequence <= consumer.last || event.position < rings_[index]->visible_tail)
            continue;
        if (event.end() > rings_[index]->visible_write) continue;
        fail("exact-loss", "5.1.8.1, 5.1.9, E10",
             "consumer " + std::to_string(consumer.number) + " skips event " +
                 std::to_string(event.sequence) + ", which still exists, and delivers " +
                 std::to_string(sequence));
    }
}

// A reader must not leave a buffer that still has published events for it. Events that do not fit
// into the new buffer would not be delivered.
void Machine::check_switch(Consumer& consumer) {
    consumer.switches++, result_.seen.switches++;
    if (consumer.is_misled) return;
    const std::uint64_t end = rings_[consumer.inode - kInodeOfFirst]->visible_write;
    if (consumer.left_at < end)
        fail("exact-loss", "5.1.8.3, E10, E24",
             "consumer " + std::to_string(consumer.number) + " leaves a buffer at position " +
                 std::to_string(consumer.left_at) + ", and its events end at " +
                 std::to_string(end));
}

// Checks the reader's own figures whenever it has nothing more to do.
void Machine::check_reader(Consumer& consumer) {
    if (consumer.is_misled) return;
    const kmes_reader_statistics& core = consumer.reader.statistics;
    const std::pair<const char*, std::pair<std::uint64_t, std::uint64_t>> figures[] = {
        {"delivered", {core.delivered, consumer.delivered}},
        {"lost", {core.lost, consumer.lost}},
        {"laps", {core.laps, kIsHooked ? consumer.laps : core.laps}},
        {"torn", {core.torn, consumer.torn}},
        {"corrupt", {core.corrupt, 0}},
        {"switches", {core.switches, kIsHooked ? consumer.switches : core.switches}},
        {"sleeps", {core.sleeps, consumer.sleeps}},
        {"mappings", {consumer.attaches - consumer.detaches, 1}},
    };
    for (const auto& [name, value] : figures) {
        if (value.first != value.second)
            fail("reader-counters", "5.1.9, 5.1.8.3 step 6",
                 "consumer " + std::to_string(consumer.number) + ": " + name + " is " +
                     std::to_string(value.first) + "; expected " + std::to_string(value.second));
    }
}

void Machine::audit_consumer(Consumer& consumer, const kmes_order_access& access) {
    if (++consumer.accesses > kMostAccessesOfAConsumer + accesses_for_bytes_)
        fail("termination", "5.1.8, E7",
             "consumer " + std::to_string(consumer.number) + " neither delivers nor sleeps");
    std::size_t index;
    Ring* ring = access.address ? ring_containing(access.address, &index) : nullptr;
    if (access.address && (!ring || index >= rings_.size()))
        fail("containment", "5.1.5", "a consumer reads outside of the buffers");
    if (ring && ring->is_poked) consumer.is_misled = true;
    if (access.bytes > 0 && ring &&
        !ring->memory.contains(static_cast<const std::uint8_t*>(access.address) + access.bytes -
                               1) &&
        access.label != KMES_ORDER_VALID_DATA)
        fail("containment", "5.1.5, E7", "a consumer reads beyond the end of the mapping");
    if (consumer.is_opened && consumer.reader.mapping.inode != consumer.inode) {
        if (consumer.inode) check_switch(consumer);
        consumer.inode = consumer.reader.mapping.inode;
    }
    consumer.left_at = consumer.reader.read_pos;
    if (ring && (access.label == KMES_ORDER_ASK_WAKE || access.label == KMES_ORDER_CLEAR_WAKE)) {
        if (access.address != ring->buffer.shared.need_wake)
            fail("containment", "5.1.6.3", "a consumer writes something other than need_wake");
        model_.buffers[index].page[kNeedWakeAt] = access.label == KMES_ORDER_ASK_WAKE ? 1 : 0;
        if (access.label == KMES_ORDER_ASK_WAKE) consumer.is_request_erased = false;
        if (access.label == KMES_ORDER_CLEAR_WAKE && consumer.settings[Key::sharing] == 1)
            fail("sleep", "E12", "a consumer that shares its buffer clears need_wake");
    }
    audit_consumer_order(consumer, access);
    if (!consumer.is_misled) audit_consumer_position(consumer, access);
}

// Checks that the fences are at the places of kmes/order.h. On this machine a missing fence may
// have no effect.
void Machine::audit_consumer_order(Consumer& consumer, const kmes_order_access& access) {
    switch (access.label) {
        case KMES_ORDER_READ_DATA:
            consumer.has_fenced_data = false;
            break;
        case KMES_ORDER_DATA_FENCE:
            consumer.has_fenced_data = true;
            break;
        case KMES_ORDER_RECHECK_TAIL:
            if (!consumer.has_fenced_data)
                fail("order", "5.1.8.1 step 5, E4",
                     "tail_pos is loaded without a fence after data");
            break;
        case KMES_ORDER_ASK_WAKE:
            consumer.has_fenced_request = false;
            consumer.is_asking = true;
            consumer.loaded_write_pos = consumer.loaded_generation = false;
            break;
        case KMES_ORDER_CLEAR_WAKE:
            consumer.is_asking = false;
            break;
        case KMES_ORDER_LOAD_WRITE_POS:
            if (consumer.is_asking && consumer.settings[Key::sharing] == 0)
                fail("sleep", "5.1.8.2 steps 2, 4 and 6",
                     "an exclusive consumer drains and has not cleared need_wake");
            break;
        case KMES_ORDER_SLEEP_FENCE:
            consumer.has_fenced_request = true;
            break;
        case KMES_ORDER_SLEEP_WRITE_POS:
        case KMES_ORDER_SLEEP_GENERATION:
            if (!consumer.has_fenced_request)
                fail("order", "5.1.8.2 step 2, E1", "checked again without a full fence");
            (access.label == KMES_ORDER_SLEEP_WRITE_POS ? consumer.loaded_write_pos
                                                        : consumer.loaded_generation) = true;
            break;
        default:
            if (access.label < KMES_ORDER_STATIC_FIELD)
                fail("order", "5.1.8", "a consumer makes an access of the producer");
            break;
    }
}

// Compares the reader's next event with its position in the ring, to count laps and torn reads.
void Machine::audit_consumer_position(Consumer& consumer, const kmes_order_access& access) {
    const kmes_reader& reader = consumer.reader;
    if (!consumer.is_opened) return;  // check_start checks what an open reads
    switch (access.label) {
        case KMES_ORDER_LOAD_WRITE_POS:
            consumer.is_attaching = false;
            break;
        case KMES_ORDER_LOAD_TAIL:
            if (!consumer.is_attaching && *reader.shared.tail_pos > reader.read_pos)
                consumer.laps++, result_.seen.laps++;
            break;
        case KMES_ORDER_RECHECK_TAIL:
            if (*reader.shared.tail_pos > reader.read_pos) consumer.torn++, result_.seen.torn++;
            break;
        case KMES_ORDER_READ_DATA: {
            const auto* at = static_cast<const std::uint8_t*>(access.address);
            const std::uint8_t* from =
                reader.shared.data + (reader.read_pos & (reader.capacity - 1));
            if (at < from || at + access.bytes > from + reader.capacity)
                fail("containment", "5.1.4",
                     "a consumer reads outside of the capacity bytes after its read position");
            break;
        }
        default:
            break;
    }
}

// E14: attach and resize exclude each other.
void Machine::wait_for_buffers(Consumer& consumer) {
    while (started_ && started_->changes_buffers) {
        consumer.state = ConsumerState::blocked;
        Fiber::pause();
        if (is_cancelling_) throw Stop{};
        consumer.state = ConsumerState::running;
    }
}

int Machine::fill_mapping(kmes_mapping* mapping) {
    const std::size_t index = ring_index(cpu_.buffer);
    if (model_.buffers[index].is_boot) return kErrorAgain;
    *mapping = {};
    mapping->base = rings_[index]->memory.base();
    mapping->mapped_bytes = rings_[index]->memory.mapped_bytes();
    mapping->device = 1;
    mapping->inode = kInodeOfFirst + index;
    return 0;
}

int Machine::on_attach(void* context, __u16 cpu, kmes_mapping* mapping) {
    auto* consumer = static_cast<Consumer*>(context);
    Machine& machine = *consumer->machine;
    if (cpu != machine.settings_[Key::cpu])
        machine.fail("attach", "5.1.1", "a consumer attaches to the buffer of another CPU");
    machine.wait_for_buffers(*consumer);
    if (machine.refuse_) return machine.refuse_--, kErrorTooManyFiles;
    const int error = machine.fill_mapping(mapping);
    if (!error) consumer->attaches++, consumer->attached_inode = mapping->inode;
    consumer->is_attaching = true;
    return error;
}

int Machine::on_identify(void* context, __u16, kmes_mapping* mapping) {
    auto* consumer = static_cast<Consumer*>(context);
    Machine& machine = *consumer->machine;
    machine.wait_for_buffers(*consumer);
    if (machine.refuse_) return machine.refuse_--, kErrorTooManyFiles;
    const int error = machine.fill_mapping(mapping);
    if (machine.foreign_) {
        machine.foreign_--;
        mapping->inode = kForeignInode;
    }
    const bool is_same = !error && mapping->inode == consumer->attached_inode;
    consumer->unsure_attaches = is_same ? 0 : consumer->unsure_attaches + 1;
    return error;
}

void Machine::on_detach(void* context, kmes_mapping*) {
    static_cast<Consumer*>(context)->detaches++;
}

// FUTEX_WAIT: the comparison is a step like any other.
int Machine::on_sleep(void* context, __u32* word, __u32 expected, __u64 timeout_ns) {
    auto* consumer = static_cast<Consumer*>(context);
    Machine& machine = *consumer->machine;
    std::size_t index;
    if (!machine.ring_containing(word, &index) ||
        word != machine.rings_[index]->buffer.shared.futex_counter)
        machine.fail("sleep", "5.1.8.2 step 5", "a consumer sleeps on another word");
    if (kIsHooked && (!consumer->loaded_write_pos || !consumer->loaded_generation))
        machine.fail("sleep", "5.1.8.2 step 2, E3", "a consumer sleeps without a second check");
    if (timeout_ns != sleep_limit(*consumer))
        machine.fail("sleep", "E12",
                     "a consumer sleeps with a limit of " + std::to_string(timeout_ns) +
                         " ns; expected " + std::to_string(sleep_limit(*consumer)) + " ns");
    if (kIsHooked && consumer->flow.budget == 0) {
        consumer->flow.next = "futex_wait";
        Fiber::pause();
        if (machine.is_cancelling_) throw Stop{};
    }
    if (consumer->flow.budget) consumer->flow.budget--;
    consumer->sleeps++;
    machine.result_.seen.sleeps++;
    consumer->accesses = 0;
    if (!kIsHooked) consumer->is_request_erased = false;  // it has just set need_wake
    if (*word != expected) return 0;
    consumer->state = ConsumerState::asleep;
    consumer->sleeps_on = index;
    consumer->timeout_ns = timeout_ns;
    consumer->is_woken = consumer->is_expired = consumer->is_interrupted = false;
    machine.check_reader(*consumer);
    while (!consumer->is_woken && !consumer->is_expired && !consumer->is_interrupted) {
        Fiber::pause();
        // The reader returns this error, because an exception might not pass through the core as
        // shipped.
        if (machine.is_cancelling_) return kErrorCancelled;
    }
    consumer->state = ConsumerState::running;
    if (consumer->is_woken) return 0;
    return consumer->is_expired ? kErrorTimedOut : kErrorInterrupted;
}

}  // namespace kmes::props
