// SPDX-License-Identifier: MIT
//
// See socket_client.h.
#include "fuzz/targets/socket_client.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/hostile_server.h"
#include "fuzz/targets/passed_files.h"
#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/socket_protocol.h"

namespace kmes::fuzz {
namespace {

constexpr int kMaxOperations = 24;
constexpr int kMaxSlots = 4;
constexpr int kLeastError = -4095;
constexpr std::uint64_t kCapacityBytes = HostileServer::kCapacityBytes;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint32_t kLongBytes = KMES_SOCKET_INLINE_MAX_BYTES + 1;
constexpr std::uint64_t kMillisecondNs = 1000000;
// For some of these a reader checks its producer (kmes/reader.h).
constexpr std::uint64_t kTimeouts[] = {0, kMillisecondNs, 60 * kMillisecondNs,
                                       2000 * kMillisecondNs};

// Returns 0, or a negative error number.
int checked(int error) {
    expect(error <= 0 && error >= kLeastError, "an error of libkmes is an error number");
    return error;
}

int by_errno(int result) {
    return checked(result == 0 ? 0 : -errno);
}

// A platform whose sleeps take no time, because no thread wakes this reader.
kmes_platform* sleepless_platform() {
    static kmes_platform platform = *kmes_user_platform();

    platform.sleep = [](void*, __u32*, __u32, __u64) { return -ETIMEDOUT; };
    return &platform;
}

class Play {
  public:
    explicit Play(FuzzedBytes* bytes) : bytes_(*bytes), server_(&bytes_) {}
    ~Play() {
        close_reader();
        while (!mapped_.empty()) unmap(0);
        for (const int fd : fds_) close(fd);
        kmes_data_table_sweep();
    }
    Play(const Play&) = delete;
    Play& operator=(const Play&) = delete;

    void run() {
        for (int i = 0; i < kMaxOperations && !bytes_.empty(); ++i) {
            server_.begin_call("", "");
            operate();
            use_mappings();
        }
    }

  private:
    struct Mapped {
        void* base;
        std::uint64_t capacity_bytes;
    };

    void operate() {
        const std::uint8_t operation = bytes_.take<std::uint8_t>();

        switch (operation % 16) {
            case 0:
            case 1:
            case 2:
                return attach();
            case 3:
            case 4:
                return map();
            case 5:
                if (!mapped_.empty()) unmap(bytes_.below(mapped_.size()));
                return;
            case 6:
                return close_one();
            case 7:
            case 8:
                return open_reader();
            case 9:
                return use_reader();
            case 10:
                return close_reader();
            case 11:
                return emit();
            case 12:
                return emit_batch();
            case 13:
                return server_.change_file();
            case 14:
                return server_.end_something();
            default:
                return operation < 128 ? ask_cpus() : ask_emitters();
        }
    }

    void attach() {
        const std::uint64_t slots = bytes_.below(kMaxSlots + 2);
        int fds[kMaxSlots], count = static_cast<int>(slots);
        __u64 capacity = 1;

        if (slots > kMaxSlots) count = -1;
        const int before = count;
        const int error = by_errno(kmes_attach(fds, &count, &capacity));

        if (error) {
            expect(error == -ERANGE || count == before, "an attach that fails leaves the count");
            expect_equal(capacity, 1u, "the capacity after an attach that fails");
            return;
        }
        expect(count > 0 && count <= before, "an attach gives as many as there are slots");
        expect(capacity >= kPageBytes && capacity <= kCapacityBytes * 2,
               "the capacity of an attach is that of the files");
        capacity_bytes_ = capacity;
        capacities_.push_back(capacity);
        for (int i = 0; i < count; ++i) {
            expect_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC, "the flags of a descriptor");
            fds_.push_back(fds[i]);
        }
    }

    void map() {
        const std::uint64_t choice = bytes_.below(16);
        Mapped mapped = {nullptr, choice == 0 ? capacity_bytes_ * 2 : capacity_bytes_};

        if (fds_.empty()) return;
        if (by_errno(kmes_map(fds_[choice % fds_.size()], mapped.capacity_bytes, &mapped.base)))
            return;
        // Perhaps an older one: a server can pass a file twice, with another capacity.
        expect(std::find(capacities_.begin(), capacities_.end(), mapped.capacity_bytes) !=
                   capacities_.end(),
               "the capacity of a mapping is that of an attach");
        mapped_.push_back(mapped);
    }

    void unmap(std::size_t i) {
        expect_equal(kmes_unmap(mapped_[i].base, mapped_[i].capacity_bytes), 0,
                     "the result of kmes_unmap");
        mapped_.erase(mapped_.begin() + static_cast<std::ptrdiff_t>(i));
    }

    void close_one() {
        if (fds_.empty()) return;
        close(fds_.back());
        fds_.pop_back();
    }

    // Accesses the memory: a page that no longer exists would raise SIGBUS.
    void use(void* base, std::uint64_t bytes) {
        auto* at = static_cast<volatile std::uint8_t*>(base);

        for (std::uint64_t i = 0; i < bytes; i += kPageBytes) sum_ += at[i];
        at[offsetof(kmes_metadata_v1, need_wake)] = 0;
    }

    void use_mappings() {
        for (const Mapped& mapped : mapped_)
            use(mapped.base, kmes_mapping_bytes(KMES_VERSION_1, mapped.capacity_bytes));
        if (is_open_) use(reader_.mapping.base, reader_.mapping.mapped_bytes);
    }

    void open_reader() {
        kmes_reader_config config = {};

        close_reader();
        kmes_reader_by_libkmes(&config, static_cast<__u16>(bytes_.below(3)));
        config.platform = sleepless_platform();
        is_open_ = checked(kmes_reader_open(&reader_, &config)) == 0;
    }

    void use_reader() {
        static std::uint8_t room[2 * kCapacityBytes];
        kmes_event_view view;

        if (!is_open_) return;
        const int found = kmes_reader_next(&reader_, room, sizeof(room), &view);

        expect(found >= kLeastError, "the result of kmes_reader_next");
        const int error = kmes_reader_wait(&reader_, kTimeouts[bytes_.below(4)]);

        expect(error >= kLeastError, "the result of kmes_reader_wait");
        // A reader that could not follow the producer has nothing mapped.
        if (!reader_.mapping.base) close_reader();
    }

    void close_reader() {
        if (is_open_) kmes_reader_close(&reader_);
        is_open_ = false;
    }

    void emit() {
        const std::string type(1 + bytes_.below(8), 't');
        const std::string payload(bytes_.below(16) == 15 ? kLongBytes : bytes_.below(32), 'p');

        server_.begin_call(type, payload);
        by_errno(kmes_emit(type.data(), static_cast<__u16>(type.size()), payload.data(),
                           static_cast<__u32>(payload.size())));
    }

    void emit_batch() {
        const std::string type(1 + bytes_.below(8), 't');
        const std::string payload(bytes_.below(32), 'p');
        const std::vector<kmes_emit_entry> entries(
            1 + bytes_.below(4), {type.data(), static_cast<__u16>(type.size()), payload.data(),
                                  static_cast<__u32>(payload.size())});
        const auto count = static_cast<__u32>(entries.size());
        __u32 emitted = ~__u32{0};

        server_.begin_call(type, payload);
        const int error = by_errno(kmes_emit_batch(entries.data(), count, &emitted));

        if (error)
            expect(emitted < count, "a batch that fails has not emitted all");
        else
            expect_equal(emitted, count, "emitted, of a batch");
    }

    void ask_cpus() {
        const int cpus = kmes_cpus_by_libkmes();

        expect(cpus >= kLeastError && cpus != 0, "the result of kmes_cpus_by_libkmes");
    }

    void ask_emitters() {
        std::vector<kmes_socket_emitter> emitters(KMES_SOCKET_EMITTERS_MAX);
        __u32 count = ~__u32{0};

        if (checked(kmes_socket_emitters(emitters.data(), &count)))
            expect_equal(count, 0u, "the emitters of a question that fails");
        else
            expect(count >= 1 && count <= KMES_SOCKET_EMITTERS_MAX,
                   "an answer has the sum, and as many emitters as there is room for");
    }

    FuzzedBytes& bytes_;
    HostileServer server_;
    std::vector<int> fds_;
    std::vector<Mapped> mapped_;
    std::vector<std::uint64_t> capacities_;          // of all attaches
    std::uint64_t capacity_bytes_ = kCapacityBytes;  // of the last attach
    kmes_reader reader_ = {};
    bool is_open_ = false;
    std::uint64_t sum_ = 0;
};

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_socket_client(const std::uint8_t* data, std::size_t size) {
    using namespace kmes::fuzz;
    const std::size_t descriptors = count_open_descriptors();
    FuzzedBytes bytes(data, size);

    Play(&bytes).run();
    expect_equal(kmes_data_table_entries(), 0u, "entries of the table of libkmes after a run");
    expect_equal(count_open_descriptors(), descriptors, "open descriptors after a run");
    expect_equal(count_mappings("memfd:kmes-fuzz"), 0u, "mappings of files after a run");
    return 0;
}
