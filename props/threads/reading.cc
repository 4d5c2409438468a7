// SPDX-License-Identifier: MIT
//
// One reader in a thread of its own. See reading.h.
#include "props/threads/reading.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "kmes/order.h"
#include "kmes/user/futex.h"

namespace kmes::props {
namespace {

// As with a kernel: the readers sleep without a timeout, so a lost wake is noticed. The reader of a
// producer in a process would check again after a second (E25).
constexpr __u64 kNoSession = 0;

constexpr std::uint64_t kLimitBesideAHostileNs = 2000000;

}  // namespace

Reading::Reading(const Mix& mix, const ReaderMix& plan, unsigned index, const Producer& producer)
    : mix_(mix), plan_(plan), index_(index), producer_(producer), draw_(mix.seed + index) {
    platform_.context = this;
    platform_.sleep = sleep;
    room_.resize(plan.room_bytes);
}

Reading::~Reading() {
    if (thread_.joinable()) thread_.join();
}

void Reading::start() {
    thread_ = std::thread([this] { live(); });
}

void Reading::rescue() {
    is_rescued_.store(true, std::memory_order_relaxed);
    place_.wake();
}

void Reading::join() {
    thread_.join();
}

std::string Reading::name() const {
    constexpr const char* kForms[] = {"copies", "reads in place", "copies in bulk", "runs"};

    return "reader " + std::to_string(index_) + " of CPU " + std::to_string(plan_.cpu) +
           ", which " + kForms[static_cast<int>(plan_.form)];
}

// -- The functions that kmes/reader.h needs -------------------------------------------------------

// Uses the producer's own mapping: for ThreadSanitizer another mapping would be other memory.
int Reading::attach(void* context, __u16 cpu, kmes_mapping* mapping) {
    Attachment attachment;
    const int error = static_cast<Reading*>(context)->producer_.attach(cpu, &attachment);

    if (error) return error;
    const BufferHandle& memory = attachment.buffers[0];

    mapping->base = memory->base();
    mapping->mapped_bytes = memory->mapped_bytes();
    mapping->device = memory->device();
    mapping->inode = memory->inode();
    mapping->session = kNoSession;
    mapping->owner = new BufferHandle(memory);
    return 0;
}

int Reading::identify(void* context, __u16 cpu, kmes_mapping* mapping) {
    Attachment attachment;
    const int error = static_cast<Reading*>(context)->producer_.attach(cpu, &attachment);

    if (error) return error;
    mapping->device = attachment.buffers[0]->device();
    mapping->inode = attachment.buffers[0]->inode();
    mapping->session = kNoSession;
    return 0;
}

void Reading::detach(void*, kmes_mapping* mapping) {
    delete static_cast<BufferHandle*>(mapping->owner);
}

int Reading::sleep(void* context, __u32* word, __u32 expected, __u64 timeout_ns) {
    auto* self = static_cast<Reading*>(context);

    self->place_.enter(word, expected, timeout_ns != KMES_NO_TIMEOUT);
    const int result = self->is_rescued_.load(std::memory_order_relaxed)
                           ? -ECANCELED
                           : kmes_futex_wait(word, expected, timeout_ns);
    self->place_.leave();
    return self->is_rescued_.load(std::memory_order_relaxed) ? -ECANCELED : result;
}

// -- Its life -------------------------------------------------------------------------------------

bool Reading::is_finished() const {
    return has_come_to(mix_.rounds) && !mix_.ends_by_retire;
}

void Reading::fail(const std::string& text) {
    if (error_.empty()) error_ = name() + ": " + text;
}

bool Reading::open() {
    kmes_reader_config config = {};
    int error;

    config.attach_functions = {attach, identify, detach, this};
    config.platform = &platform_;
    config.sharing = plan_.is_shared ? KMES_SHARED : KMES_EXCLUSIVE;
    config.shared_limit_ns =
        mix_.hostile == Hostile::kAny ? kLimitBesideAHostileNs : KMES_NO_TIMEOUT;
    config.spin_looks = plan_.spin_looks;
    config.cpu_id = static_cast<__u16>(plan_.cpu);
    while ((error = kmes_reader_open(&reader_, &config)) == -EAGAIN) {  // the boot phase
        if (is_rescued_.load(std::memory_order_relaxed)) return false;
        usleep(50);
    }
    if (error) fail("cannot open, error " + std::to_string(error));
    accounts_.push_back({});
    if (const kmes_reader_place place = kmes_reader_get_place(&reader_); place.is_known) {
        accounts_.back().last = place.last_sequence;
        accounts_.back().first = place.last_sequence + 1;
    }
    last_numbers_.assign(mix_.emitters + 1, 0);
    return !error;
}

void Reading::close() {
    const kmes_reader_statistics& now = reader_.statistics;

    if (now.corrupt) fail(std::to_string(now.corrupt) + " times content that cannot be");
    if (now.delivered != accounts_.back().delivered || now.lost != accounts_.back().lost)
        fail("its statistics say " + std::to_string(now.delivered) + " delivered and " +
             std::to_string(now.lost) + " lost; it was given " +
             std::to_string(accounts_.back().delivered) + " and told of " +
             std::to_string(accounts_.back().lost));
    statistics_.delivered += now.delivered;
    statistics_.lost += now.lost;
    statistics_.laps += now.laps;
    statistics_.torn += now.torn;
    statistics_.not_newer += now.not_newer;
    statistics_.switches += now.switches;
    statistics_.sleeps += now.sleeps;
    kmes_reader_close(&reader_);
}

void Reading::live() {
    bool goes_on = open();

    while (goes_on) {
        int result = read();

        if (!error_.empty() || is_finished()) break;
        if (restarts_now_) {
            restarts_now_ = false;
            close();
            goes_on = open();
            continue;
        }
        if (result == KMES_READ_EMPTY) result = kmes_reader_wait(&reader_, KMES_NO_TIMEOUT);
        if (is_rescued_.load(std::memory_order_relaxed)) break;
        if (result == -ESHUTDOWN && has_come_to(mix_.rounds)) break;
        if (result < 0 && result != -EINTR) fail("error " + std::to_string(result));
    }
    if (reader_.mapping.base) close();
    is_done_.store(true, std::memory_order_relaxed);
}

// -- The forms ------------------------------------------------------------------------------------

int Reading::read() {
    int result;

    if (plan_.form == Form::kPlace) return read_in_place();
    if (plan_.form == Form::kBulk) return read_bulks();
    if (plan_.form == Form::kCopy) return read_copies();
    do {
        result = kmes_reader_run(&reader_, room_.data(), room_.size(), take_one, this);
    } while (grow(result, 2 * room_.size()));
    return result;
}

// Returns true if there was too little room, and there is more now.
bool Reading::grow(int result, std::uint64_t needed_bytes) {
    if (result != -EMSGSIZE) return false;
    room_.resize(needed_bytes);
    return true;
}

void Reading::dawdle() {
    volatile std::uint64_t turns;

    if (!plan_.dawdle) return;
    for (turns = draw_.below(plan_.dawdle); turns > 0;) turns = turns - 1;
}

int Reading::take_one(void* context, const kmes_event_view* view) {
    auto* self = static_cast<Reading*>(context);

    self->dawdle();
    return self->take(*view) ? 0 : 1;
}

int Reading::read_copies() {
    for (;;) {
        kmes_event_view view;
        const int result = kmes_reader_next(&reader_, room_.data(), room_.size(), &view);

        if (grow(result, view.event_size)) continue;
        if (result != KMES_READ_EVENT || !take(view)) return result;
        dawdle();
    }
}

// Reads bytes in the ring with the accesses of the core, and trusts them only after the release.
int Reading::read_in_place() {
    for (;;) {
        kmes_event_view view, whole;
        const int result = kmes_reader_peek(&reader_, &view);

        if (result != KMES_READ_EVENT) return result;
        room_.resize(std::max<std::size_t>(room_.size(), view.event_size));
        kmes_copy_out(room_.data(), reader_.shared.data, reader_.capacity, reader_.read_pos,
                      view.event_size, KMES_ORDER_READ_DATA);
        dawdle();
        if (draw_.one_in(4) && !kmes_reader_peek_is_whole(&reader_)) continue;
        if (!kmes_reader_release(&reader_)) continue;
        kmes_event_view_make(&whole, room_.data());
        whole.lost_before = view.lost_before;
        if (whole.event_size != view.event_size || whole.sequence != view.sequence) {
            fail("the header of an event in place changed between peek and release");
            return -EINVAL;
        }
        if (!take(whole)) return result;
    }
}

int Reading::read_bulks() {
    for (;;) {
        kmes_event_view view;
        kmes_bulk bulk;
        __u32 needed_bytes = 0;
        const int result =
            kmes_reader_bulk(&reader_, room_.data(), room_.size(), &bulk, &needed_bytes);
        bool goes_on = true;

        if (grow(result, needed_bytes)) continue;
        if (result != KMES_READ_EVENT) return result;
        while (kmes_bulk_next(&reader_, &bulk, &view)) goes_on = take(view) && goes_on;
        if (!goes_on) return result;
        dawdle();
    }
}

// -- Its deliveries -------------------------------------------------------------------------------

bool Reading::take(const kmes_event_view& view) {
    Account& account = accounts_.back();
    EventKey key;
    const std::string wrong = check_event(mix_.seed, mix_.sizes, view, &key);

    if (!wrong.empty()) {
        fail("sequence " + std::to_string(view.sequence) + ": " + wrong);
        return false;
    }
    if (view.cpu_id != plan_.cpu || key.emitter >= last_numbers_.size())
        fail("an event of another CPU or of nobody");
    else if (account.last && view.sequence <= account.last)
        fail("sequence " + std::to_string(view.sequence) + " after " +
             std::to_string(account.last));
    else if (view.lost_before != (account.first ? view.sequence - account.last - 1 : 0))
        fail("sequence " + std::to_string(view.sequence) + " after " +
             std::to_string(account.last) + ", and lost_before says " +
             std::to_string(view.lost_before));
    else if (key.number <= last_numbers_[key.emitter])
        fail("emitter " + std::to_string(key.emitter) + " out of order");
    if (!error_.empty()) return false;
    last_numbers_[key.emitter] = key.number;
    if (!account.first) account.first = view.sequence;
    account.last = view.sequence;
    account.delivered++;
    account.lost += view.lost_before;
    delivered_.push_back(key);
    if (key.emitter == 0) take_marker(key.number);
    return !restarts_now_ && !is_finished();
}

// A reader that opens again may meet rounds that it has seen before.
void Reading::take_marker(unsigned round) {
    if (!has_come_to(round)) round_.store(round, std::memory_order_relaxed);
    if (!plan_.restarts || round <= restarted_at_ || round == mix_.rounds || !draw_.one_in(2))
        return;
    restarted_at_ = round;
    restarts_now_ = true;
}

}  // namespace kmes::props
