// SPDX-License-Identifier: MIT
//
// C++20: a std::jthread for each CPU, std::atomic_ref with its default order everywhere, RAII for
// mappings; the ring is copied in blocks, and events are views of a block. The inode of a second
// attachment shows whether a buffer was alive when its generation was read (E19).

#include <linux/futex.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "../c/contract.h"

namespace {

using Bytes = std::span<const unsigned char>;
std::mutex attach_mutex;

struct Attachment {
    explicit Attachment(int cpus) : fds(static_cast<size_t>(cpus)) {
        attach_again(fds.data(), cpus, &capacity);
    }
    ~Attachment() {
        for (const int fd : fds) close(fd);
    }
    ino_t inode(int cpu) const {
        struct stat status{};
        if (fstat(fds[static_cast<size_t>(cpu)], &status) != 0) err(1, "fstat");
        return status.st_ino;
    }
    std::vector<int> fds;
    uint64_t capacity = 0;
};

class Mapping {
  public:
    Mapping(int fd, uint64_t capacity) : base_(map_ring(fd, capacity)), capacity_(capacity) {}
    ~Mapping() { unmap_ring(base_, capacity_); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    std::atomic_ref<uint64_t> word(int at) const {
        return std::atomic_ref(*reinterpret_cast<uint64_t*>(base_ + at));
    }
    std::atomic_ref<uint32_t> counter() const {
        return std::atomic_ref(*reinterpret_cast<uint32_t*>(base_ + AT_FUTEX_COUNTER));
    }
    std::atomic_ref<uint8_t> flag() const { return std::atomic_ref(base_[AT_NEED_WAKE]); }
    const unsigned char* at(uint64_t position) const {
        return base_ + METADATA_BYTES + position % capacity_;
    }
    unsigned char* base() const { return base_; }
    uint64_t capacity() const { return capacity_; }

  private:
    unsigned char* base_;
    uint64_t capacity_;
};

class Consumer {
  public:
    Consumer(int cpu, int cpus) : cpu_(cpu), cpus_(cpus) {}

    void run() {
        for (bool first = true; !over_; first = false) {
            open();
            if (over_) break;
            if (!first) report_line(&report_, 'G', cpu_, generation_);
            while (!over_ && !consume()) continue;
            mapping_.reset();
        }
        report_flush(&report_);
        free(report_.text);
    }

  private:
    void open() {
        const std::scoped_lock lock(attach_mutex);
        for (ino_t inode = 0;;) {
            const Attachment attachment(cpus_);
            // In the second attachment: is it still the same buffer?
            if (mapping_ != nullptr && attachment.inode(cpu_) == inode) break;
            inode = attachment.inode(cpu_);
            mapping_ = std::make_unique<Mapping>(attachment.fds[static_cast<size_t>(cpu_)],
                                                 attachment.capacity);
            if (const char* reason = refusal_of(mapping_->base(), mapping_->capacity())) {
                refuse(reason);
                return;
            }
            generation_ = mapping_->word(AT_GENERATION);
        }
        position_ = mapping_->word(AT_TAIL_POS);
    }

    void refuse(const char* reason) {
        report_refusal(&report_, cpu_, reason);
        over_ = true;
    }

    // Drains and sleeps. True when the buffer is retired and empty.
    bool consume() {
        const bool retired = mapping_->word(AT_GENERATION) != generation_;
        while (!over_ && take()) continue;
        report_flush(&report_);
        if (retired || over_) return true;
        const uint32_t seen = mapping_->counter();
        mapping_->flag() = 1;
        if (mapping_->word(AT_WRITE_POS) <= position_ &&
            mapping_->word(AT_GENERATION) == generation_) {
            syscall(SYS_futex, mapping_->base() + AT_FUTEX_COUNTER, FUTEX_WAIT, seen, nullptr,
                    nullptr, 0);
        }
        mapping_->flag() = 0;
        return false;
    }

    // False if there is nothing more.
    bool take() {
        const uint64_t end = mapping_->word(AT_WRITE_POS);
        const uint64_t tail = mapping_->word(AT_TAIL_POS);
        position_ = std::max(position_, tail);
        if (position_ >= end) return end < mapping_->word(AT_WRITE_POS);
        // At most 4 KiB at once, but one event at least.
        const unsigned char* from = mapping_->at(position_);
        const uint64_t there = room_within(end - position_, mapping_->capacity());
        shape first{};
        const bool right = shape_of(from, there, &first);
        const uint64_t length =
            right ? std::min(there, std::max<uint64_t>(4096, first.event_size)) : 0;
        block_.assign(from, from + length);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (mapping_->word(AT_TAIL_POS) > position_) return true;
        if (!right) {
            refuse("corrupt content");
            return false;
        }
        for (Bytes rest(block_); !over_;) {
            shape found{};
            // An event cut off at the end of the block is read again with the next block, which
            // also shows an impossible size.
            if (!shape_of(rest.data(), rest.size(), &found)) break;
            position_ += found.event_size;
            deliver(rest.first(found.event_size), found);
            rest = rest.subspan(found.event_size);
        }
        return !over_;
    }

    void deliver(Bytes event, const shape& found) {
        if (found.sequence <= last_) return;
        if (last_ != 0 && found.sequence != last_ + 1)
            report_line(&report_, 'L', cpu_, found.sequence - last_ - 1);
        last_ = found.sequence;
        report_event(&report_, cpu_, event.data(), &found);
        over_ = is_the_end(event.data(), &found);
    }

    int cpu_;
    int cpus_;
    bool over_ = false;
    std::unique_ptr<Mapping> mapping_;
    uint64_t generation_ = 0;
    uint64_t position_ = 0;
    uint64_t last_ = 0;
    std::vector<unsigned char> block_;
    report report_{};
};

}  // namespace

int main() {
    const int cpus = count_cpus();
    std::vector<std::jthread> threads;
    for (int i = 0; i < cpus; ++i) threads.emplace_back([i, cpus] { Consumer(i, cpus).run(); });
    threads.clear();
    return 0;
}
