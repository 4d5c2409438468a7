// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Producer: checks the events of callers, and passes them to the core. Takes only the CPU's lock.
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "kmes/call.h"
#include "kmes/user/producer_cpu.h"

namespace kmes {

struct Producer::Input {
    struct kmes_event_input core;
};

// event-model.md, kmes_emit: the checks that do not depend on the ring. Fills in all but the
// payload's address.
[[gnu::always_inline]] inline int Producer::prepare(Input* input, unsigned cpu,
                                                    std::string_view type, uint64_t payload_len,
                                                    uint8_t origin) const {
    if (cpu >= cpus_.size()) return -EINVAL;
    if (type.empty() || type.size() > UINT16_MAX) return -EINVAL;
    if (!kmes_utf8_is_valid(type.data(), type.size())) return -EINVAL;
    if (cpus_[cpu]->platform.is_closed()) return -ESHUTDOWN;
    input->core.type = type.data();
    input->core.type_len = static_cast<__u16>(type.size());
    // A length of more than 32 bits is over 50 % of any capacity, and must remain so.
    input->core.payload_len =
        static_cast<__u32>(payload_len > UINT32_MAX ? UINT32_MAX : payload_len);
    input->core.origin_class = origin;
    input->core.header_extra_len = 0;
    return 0;
}

// The core returns -EBUSY to every rejected emitter. After the end of the producer this is
// permanent.
[[gnu::always_inline]] inline int Producer::refused(const Cpu& cpu, int error) const {
    return error == -EBUSY && cpu.platform.is_closed() ? -ESHUTDOWN : error;
}

int Producer::emit(unsigned cpu, std::string_view type, std::span<const std::byte> payload,
                   uint8_t origin) {
    Input input;
    int error = prepare(&input, cpu, type, payload.size(), origin);

    if (error) return error;
    if (kmes_event_bytes(&input.core) > max_event_bytes_.load(std::memory_order_relaxed))
        return -ENOSPC;
    input.core.payload = payload.data();
    return refused(*cpus_[cpu], kmes_cpu_emit_call(&cpus_[cpu]->core, &input.core));
}

int Producer::emit_in_kernel(unsigned cpu, std::string_view type,
                             std::span<const std::byte> payload, uint8_t origin) {
    Input input;
    int error = prepare(&input, cpu, type, payload.size(), origin);

    if (error) return error;
    input.core.payload = payload.data();
    return refused(*cpus_[cpu], kmes_cpu_emit(&cpus_[cpu]->core, &input.core));
}

int Producer::check_batch(unsigned cpu, std::span<const BatchEntry> entries) const {
    if (cpu >= cpus_.size()) return -EINVAL;
    return entries.empty() || entries.size() > KMES_BATCH_MAX_ENTRIES ? -EINVAL : 0;
}

int Producer::emit_batch(unsigned cpu, std::span<const BatchEntry> entries, size_t* emitted,
                         uint8_t origin) {
    struct kmes_batch_rules rules;
    struct kmes_batch batch;
    __u32 count = 0;
    int error = check_batch(cpu, entries);

    *emitted = 0;
    if (error) return error;
    rules.max_event_bytes = max_event_bytes_.load(std::memory_order_relaxed);
    rules.origin_class = origin;
    struct kmes_cpu* core = &cpus_[cpu]->core;

    kmes_batch_begin(core, &batch);
    error = kmes_batch_emit_entries(core, &batch, &rules, entries.data(),
                                    static_cast<__u32>(entries.size()), &count);
    kmes_batch_end(core, &batch);
    *emitted = count;
    // The core checks the size of an entry before it finds that the section is closed.
    if (error == -ENOSPC && cpus_[cpu]->platform.is_closed()) return -ESHUTDOWN;
    return refused(*cpus_[cpu], error);
}

int Producer::emit_batch_in_kernel(unsigned cpu, std::span<const BatchEntry> entries,
                                   size_t* emitted, uint8_t origin) {
    struct kmes_batch batch;
    int error = check_batch(cpu, entries);

    *emitted = 0;
    if (error) return error;
    struct kmes_cpu* core = &cpus_[cpu]->core;

    kmes_batch_begin(core, &batch);
    for (const BatchEntry& entry : entries) {
        Input input;

        error = prepare(&input, cpu, entry.type_text(), entry.payload_len, origin);
        if (!error) {
            input.core.payload = entry.payload;
            error = refused(*cpus_[cpu], kmes_batch_emit(core, &batch, &input.core));
        }
        if (!error) ++*emitted;
    }
    kmes_batch_end(core, &batch);
    return error == -ESHUTDOWN ? error : 0;
}

// The parameters of kmes/call.h for one call: the current MaxEventSize, and staging memory of that
// size.
class Producer::Call {
  public:
    Call(const Producer& producer, Cpu& cpu, const CallerMemory& memory) {
        core_.max_event_bytes = producer.max_event_bytes_.load(std::memory_order_relaxed);
        staging_.reset(new (std::nothrow) __u8[core_.max_event_bytes]);
        core_.cpu = &cpu.core;
        core_.staging = staging_.get();
        core_.fetch = memory.fetch;
        core_.context = memory.context;
        core_.origin_class = KMES_ORIGIN_USERSPACE;
    }

    const struct kmes_call* core() const { return &core_; }

  private:
    std::unique_ptr<__u8[]> staging_;
    struct kmes_call core_ = {};
};

int Producer::serve_emit(unsigned cpu, const CallerMemory& memory, const void* type,
                         uint16_t type_len, const void* payload, uint32_t payload_len) {
    if (cpu >= cpus_.size()) return -EINVAL;
    Call call(*this, *cpus_[cpu], memory);

    if (!call.core()->staging) return -ENOMEM;
    return refused(*cpus_[cpu], kmes_call_emit(call.core(), type, type_len, payload, payload_len));
}

int Producer::serve_emit_batch(unsigned cpu, const CallerMemory& memory,
                               const struct kmes_emit_entry* entries, uint32_t count,
                               uint32_t* emitted) {
    *emitted = 0;
    if (cpu >= cpus_.size()) return -EINVAL;
    Call call(*this, *cpus_[cpu], memory);

    if (!call.core()->staging) return -ENOMEM;
    return refused(*cpus_[cpu], kmes_call_emit_batch(call.core(), entries, count, emitted));
}

int Producer::reserve(unsigned cpu, std::string_view type, uint32_t payload_len,
                      Reservation* reservation, uint8_t origin) {
    Input input;
    int error = prepare(&input, cpu, type, payload_len, origin);

    if (error) return error;
    if (reservation->is_open()) return -EBUSY;
    input.core.payload = nullptr;
    error = refused(*cpus_[cpu], kmes_reserve(&cpus_[cpu]->core, &input.core, &reservation->core_));
    if (!error) reservation->cpu_ = &cpus_[cpu]->core;
    return error;
}

std::span<std::byte> Reservation::payload() const {
    if (!cpu_) return {};
    return {reinterpret_cast<std::byte*>(core_.payload), core_.payload_len};
}

void Reservation::fill(uint32_t offset, std::span<const std::byte> bytes) {
    if (!cpu_) return;
    uint64_t length = bytes.size() < core_.payload_len ? bytes.size() : core_.payload_len;

    kmes_reservation_fill(cpu_, &core_, offset, bytes.data(), static_cast<__u32>(length));
}

void Reservation::commit() {
    if (struct kmes_cpu* cpu = std::exchange(cpu_, nullptr)) kmes_commit(cpu, &core_);
}

void Reservation::abandon() {
    if (struct kmes_cpu* cpu = std::exchange(cpu_, nullptr)) kmes_abandon(cpu, &core_);
}

}  // namespace kmes
