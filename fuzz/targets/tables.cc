// SPDX-License-Identifier: MIT
//
// See tables.h.
#include "fuzz/targets/tables.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/tables_producer.h"
#include "fuzz/targets/tables_program.h"
#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/libkmes_reader.h"

namespace kmes::fuzz {
namespace {

constexpr int kMostActions = 24;
constexpr int kMostActionsOfChild = 6;
constexpr int kMostForks = 2;
constexpr int kMostOrders = 4;  // to the producer
constexpr std::size_t kMappings = 6;
constexpr std::size_t kReaders = 2;
constexpr std::size_t kMetadataBytes = 4096;

void* const kUntouched = reinterpret_cast<void*>(0x1234567);

struct Mapping {
    void* base = nullptr;
    std::uint64_t capacity = 0;
};

struct Reader {
    kmes_reader core = {};
    bool is_open = false;
};

// The number of mappings of memory files: those of buffers, and those that the table keeps.
std::size_t mapped_buffers() {
    const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    std::string text;
    char piece[16384];
    ssize_t got;
    while ((got = ::read(fd, piece, sizeof piece)) > 0)
        text.append(piece, static_cast<std::size_t>(got));
    ::close(fd);
    std::size_t count = 0;
    for (std::size_t at = text.find("/memfd:"); at != std::string::npos;
         at = text.find("/memfd:", at + 1))
        ++count;
    return count;
}

// The permitted effect of a call on the descriptors that are not the program's.
enum class Effect { none_new, one_new };

class Play {
  public:
    explicit Play(FuzzedBytes* bytes) : bytes_(*bytes) {}

    void run() {
        for (int i = 0; i < kMostActions && !bytes_.empty(); ++i) act();
        end();
    }

  private:
    void act() {
        switch (bytes_.below(16)) {
            case 0:
            case 1:
                return attach();
            case 2:
            case 3:
                return map();
            case 4:
                return unmap(&mappings_[bytes_.below(kMappings)]);
            case 5:
                return emit();
            case 6:
                return use_reader();
            case 7:
                return close_reader(&readers_[bytes_.below(kReaders)]);
            case 8:
                return close_one();
            case 9:
                return copy();
            case 10:
                return copy_over();
            case 11:
                files_.open_file();
                return;
            case 12:
                files_.close_from(3 + static_cast<int>(bytes_.below(16)));
                return;
            case 13:
                return order();
            case 14:
                return fork_and_act();
            default:
                return refused();
        }
    }

    // The descriptors that libkmes has kept.
    OpenNumbers kept() const { return open_numbers() & ~files_.numbers(); }

    // Checks one call of libkmes. `before`: the descriptors kept before it.
    void expect_kept(const OpenNumbers& before, Effect effect) {
        files_.expect_untouched();
        const OpenNumbers now = kept();
        const std::size_t more = (now & ~before).count();
        expect(more <= (effect == Effect::one_new ? 1u : 0u), "a call leaves a descriptor open");
        for (std::size_t fd = 0; fd < now.size(); ++fd) {
            struct stat status{};
            if (!now[fd] || before[fd]) continue;
            expect(::fstat(static_cast<int>(fd), &status) == 0 && S_ISSOCK(status.st_mode),
                   "libkmes keeps a descriptor that is no connection");
        }
    }

    void attach() {
        const OpenNumbers before = kept();
        const OpenNumbers own = files_.numbers();
        std::array<int, kTablesCpus> fds = {-7, -7};
        int count = bytes_.below(8) == 7 ? 1 : kTablesCpus;
        const bool has_room = count == kTablesCpus;
        __u64 capacity = 7;
        const int result = kmes_attach(fds.data(), &count, &capacity);
        const int error = result == 0 ? 0 : errno;
        expect_equal(error, has_room ? 0 : ERANGE, "the error of an attach");
        if (error != 0) {
            expect(fds == std::array<int, kTablesCpus>{-7, -7} && capacity == 7,
                   "a refused attach writes what it should not");
            return expect_kept(before, Effect::none_new);
        }
        expect_equal(count, kTablesCpus, "the number of CPUs");
        for (const int fd : fds) {
            expect(fd >= 3 && fd < kFirstReserved && !own[static_cast<std::size_t>(fd)],
                   "attach gives a number that is the program's");
            expect((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "attach gives what exec inherits");
            files_.add(fd, capacity, true);
        }
        expect(fds[0] != fds[1], "attach gives one number twice");
        expect_kept(before, Effect::one_new);
    }

    void map() {
        const int fd = files_.pick(bytes_.take<std::uint8_t>());
        const bool is_other = bytes_.below(8) == 7;
        if (fd < 0) return;
        const ProgramFiles::File& file = files_.at(fd);
        std::uint64_t capacity = file.capacity == 0 ? kTablesCapacity : file.capacity;
        if (is_other) capacity *= 2;
        const OpenNumbers before = kept();
        void* base = kUntouched;
        const int error = kmes_map(fd, capacity, &base) == 0 ? 0 : errno;
        expect_kept(before, Effect::none_new);
        if (error != 0) {
            expect(base == kUntouched, "a refused map writes to *base");
            expect(is_other || !files_.has_attached(file.identity), "a buffer is not mapped");
            expect_equal(error, EINVAL, "the error of a map");
            return;
        }
        expect(file.capacity != 0 && !is_other, "a file is mapped that is no such buffer");
        expect_ring(static_cast<const unsigned char*>(base), capacity);
        Mapping& mapping = mappings_[bytes_.below(kMappings)];
        unmap(&mapping);
        mapping = {base, capacity};
    }

    static void expect_ring(const unsigned char* base, std::uint64_t capacity) {
        constexpr unsigned char kMagic[] = KMES_MAGIC_INITIALIZER;
        expect(std::memcmp(base, kMagic, sizeof kMagic) == 0, "what is mapped is no ring");
        const unsigned char* data = base + kMetadataBytes;
        expect(std::memcmp(data, data + capacity, 256) == 0, "the copies of the data differ");
    }

    void unmap(Mapping* mapping) {
        if (mapping->base == nullptr) return;
        const OpenNumbers before = kept();
        expect(kmes_unmap(mapping->base, mapping->capacity) == 0, "a mapping is not unmapped");
        expect_kept(before, Effect::none_new);
        *mapping = {};
    }

    void emit() {
        const OpenNumbers before = kept();
        if (bytes_.below(2) == 0) {
            expect(kmes_emit("fuzz.tables", 11, "payload", 7) == 0, "an event is refused");
        } else {
            const std::array<kmes_emit_entry, 2> entries = {
                {{"fuzz.tables", 11, "payload", 7}, {"fuzz.tables", 11, nullptr, 0}}};
            __u32 emitted = 0;
            expect(kmes_emit_batch(entries.data(), 2, &emitted) == 0 && emitted == 2,
                   "a batch is refused");
        }
        expect_kept(before, Effect::none_new);
    }

    void use_reader() {
        Reader& reader = readers_[bytes_.below(kReaders)];
        const OpenNumbers before = kept();
        if (!reader.is_open) {
            kmes_reader_config config = {};
            kmes_reader_by_libkmes(&config, static_cast<__u16>(bytes_.below(kTablesCpus)));
            config.sharing = KMES_SHARED;
            expect(kmes_reader_open(&reader.core, &config) == 0, "a reader does not open");
            reader.is_open = true;
            return expect_kept(before, Effect::one_new);
        }
        std::array<unsigned char, 4096> room;
        kmes_event_view view;
        int result = 0;
        for (int i = 0; i < 4; ++i) {
            result = kmes_reader_next(&reader.core, room.data(), room.size(), &view);
            if (result <= 0) break;
        }
        expect(result >= 0 || result == -ESHUTDOWN || result == -ENOSYS, "a reader fails");
        // A reader that moves to another buffer has another lease.
        expect_kept(before, Effect::one_new);
    }

    void close_reader(Reader* reader) {
        if (!reader->is_open) return;
        const OpenNumbers before = kept();
        kmes_reader_close(&reader->core);
        reader->is_open = false;
        expect_kept(before, Effect::none_new);
    }

    void close_one() {
        const int fd = files_.pick(bytes_.take<std::uint8_t>());
        if (fd >= 0) files_.close(fd);
    }

    void copy() {
        const int fd = files_.pick(bytes_.take<std::uint8_t>());
        if (fd >= 0) files_.copy(fd);
    }

    // Also over a number that libkmes keeps.
    void copy_over() {
        const int fd = files_.pick(bytes_.take<std::uint8_t>());
        const int to = 3 + static_cast<int>(bytes_.below(16));
        if (fd >= 0) files_.copy_over(fd, to);
    }

    void order() {
        if (is_child_ || ++orders_ > kMostOrders) return;
        if (bytes_.below(4) == 3)
            TablesProducer::get().restart();
        else
            TablesProducer::get().resize();
    }

    void fork_and_act() {
        if (is_child_ || ++forks_ > kMostForks) return;
        const pid_t child = ::fork();
        expect(child >= 0, "no process for a child");
        if (child == 0) {
            is_child_ = true;
            for (int i = 0; i < kMostActionsOfChild && !bytes_.empty(); ++i) act();
            if (bytes_.below(2) == 1) end();
            ::_exit(0);
        }
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        if (status != 0) fail("a forked child ends with status " + std::to_string(status));
        // The child continues from the same byte as the parent.
        files_.expect_untouched();
    }

    // Calls with invalid arguments: all are refused, and nothing changes.
    void refused() {
        const OpenNumbers before = kept();
        void* base = kUntouched;
        switch (bytes_.below(5)) {
            case 0:
                expect(kmes_map(-1, kTablesCapacity, &base) == -1 && errno == EBADF, "map of -1");
                break;
            case 1:
                expect(kmes_map(kFirstReserved - 1, 4097, &base) == -1 && errno == EINVAL,
                       "map of a capacity that is none");
                break;
            case 2:
                expect(kmes_unmap(this, 4097) == -1 && errno == EINVAL, "unmap of no mapping");
                break;
            case 3:
                expect(kmes_attach(nullptr, nullptr, nullptr) == -1 && errno == EFAULT,
                       "attach without places");
                break;
            default:
                expect(kmes_emit("", 0, nullptr, 0) == -1 && errno == EINVAL,
                       "an event without a type");
        }
        expect(base == kUntouched, "a refused map writes to *base");
        expect_kept(before, Effect::none_new);
    }

    // The program closes and unmaps everything; then libkmes must have nothing left either.
    void end() {
        for (Reader& reader : readers_) close_reader(&reader);
        for (Mapping& mapping : mappings_) unmap(&mapping);
        for (int fd = 3; fd < kFirstReserved; ++fd)
            if (files_.at(fd).is_open) files_.close(fd);
        kmes_data_table_sweep();
        expect_equal(kmes_data_table_entries(), 0u, "the number of entries of the table");
        expect_equal(kept().count(), std::size_t{0}, "the number of descriptors that are left");
        expect_equal(mapped_buffers(), std::size_t{0}, "the number of mappings that are left");
    }

    FuzzedBytes& bytes_;
    ProgramFiles files_;
    std::array<Mapping, kMappings> mappings_;
    std::array<Reader, kReaders> readers_;
    int forks_ = 0;
    int orders_ = 0;
    bool is_child_ = false;
};

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_tables(const std::uint8_t* data, std::size_t size) {
    kmes::fuzz::FuzzedBytes bytes(data, size);
    kmes::fuzz::TablesProducer::get().reset();
    kmes::fuzz::note_foreign_numbers();
    kmes::fuzz::Play(&bytes).run();
    return 0;
}
