// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/fuzz/calls.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>

#include "kmes/abi.h"

namespace kmes::fuzz {
namespace {

using identity::address_of;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kTextPages = 20;  // 80 KiB: types and payloads
constexpr std::size_t kReadOnly = 0;
constexpr std::size_t kText = kReadOnly + kPage;
constexpr std::size_t kAbsent = kText + kTextPages * kPage;
// The page of structures, before an unmapped page. No other data is in it, so an invalid address of
// another call refers to no structure.
constexpr std::size_t kStructures = kAbsent + kPage;
constexpr std::size_t kStructuresEnd = kStructures + kPage;
constexpr std::size_t kArenaBytes = kStructuresEnd + kPage;
constexpr std::size_t kMostBuffers = 48;
constexpr std::size_t kMostMappings = 12;

}  // namespace

Player::Player(const SharedDevices& shared) : shared_(shared) {
    void* const arena =
        mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    arena_ = static_cast<std::uint8_t*>(arena);
    fill(kReadOnly);
    mprotect(arena_ + kReadOnly, kPage, PROT_READ);
    mprotect(arena_ + kAbsent, kPage, PROT_NONE);
    mprotect(arena_ + kStructuresEnd, kPage, PROT_NONE);
}

Player::~Player() {
    clean_up();
    munmap(arena_, kArenaBytes);
}

void Player::fill(std::size_t from) {
    for (std::size_t i = from; i < kAbsent; i++)
        arena_[i] = static_cast<std::uint8_t>('a' + i % 26);
}

void Player::play(const Input& input) {
    fill(kText);
    Bytes bytes(input);
    while (!bytes.is_empty()) one(bytes);
    clean_up();
}

void Player::clean_up() {
    for (const Mapping& mapping : mappings_) munmap(mapping.base, mapping.bytes);
    for (const int fd : buffers_) close(fd);
    for (int& fd : devices_) {
        if (fd >= 0) close(fd);
        fd = -1;
    }
    mappings_.clear();
    buffers_.clear();
}

long Player::count(long result) {
    calls_++;
    succeeded_ += result >= 0;
    return result;
}

void Player::keep(int fd) {
    if (fd < 0) return;
    if (buffers_.size() < kMostBuffers)
        buffers_.push_back(fd);
    else
        close(fd);
}

void Player::one(Bytes& bytes) {
    using Method = void (Player::*)(Bytes&);
    static constexpr Method kMethods[] = {
        &Player::operate,       &Player::operate,     &Player::operate,    &Player::operate,
        &Player::open_or_close, &Player::create,      &Player::join,       &Player::attach,
        &Player::emit,          &Player::emit_batch,  &Player::configure,  &Player::ask,
        &Player::unknown_ioctl, &Player::map,         &Player::map,        &Player::use_mapping,
        &Player::use_mapping,   &Player::other_calls, &Player::attach_cpu, &Player::identify,
    };
    (this->*kMethods[bytes.below(std::size(kMethods))])(bytes);
}

// Returns a device of this player, which opens at its first use, or a device of all threads.
int Player::device(Bytes& bytes) {
    const std::uint8_t which = bytes.byte();
    if (which % 8 == 7) return shared_[which / 8 % kSharedDevices].get();
    int& fd = devices_[which % 8 < 4 ? 0 : which % devices_.size()];
    if (fd < 0) fd = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);
    return fd;
}

int Player::buffer(Bytes& bytes) {
    if (buffers_.empty()) return -1;
    return buffers_[bytes.byte() % buffers_.size()];
}

std::uint64_t Player::address(Bytes& bytes, const void* good) {
    const std::uint8_t kind = bytes.byte();
    if (kind < 220) return address_of(good);
    switch (kind % 8) {
        case 0:
            return 0;
        case 1:
            return address_of(arena_ + kAbsent);
        case 2:
            return address_of(arena_ + kAbsent - bytes.byte());
        case 3:
            return address_of(arena_ + kReadOnly);
        case 4:
            return 0xffff888000000000 + bytes.word(3);  // in the kernel's half
        case 5:
            return 0x8000000000000000;  // non-canonical
        case 6:
            return bytes.word(8) |
                   1ull << 62;  // no valid address, and never this process's own memory
        default:
            return ~0ull - bytes.byte();
    }
}

std::uint64_t Player::text(Bytes& bytes) {
    return address(bytes, arena_ + kText + bytes.byte());
}

std::uint64_t Player::capacity(Bytes& bytes) {
    const std::uint8_t kind = bytes.byte();
    if (kind < 200) return 4096ull << kind % 3;
    if (kind < 220) return 4096ull << kind % 8;
    if (kind < 222) return 256ull << 20;
    return bytes.number();
}

template <typename Structure>
long Player::call(Bytes& bytes, int fd, unsigned long command, Structure* structure) {
    std::uint64_t at = address(bytes, structure);
    std::size_t there = sizeof(Structure);
    if (bytes.byte() >= 248) {
        // Only the first `there` bytes are mapped.
        there = 1 + bytes.byte() % sizeof(Structure);
        at = address_of(arena_ + kStructuresEnd - there);
        std::memcpy(arena_ + kStructuresEnd - there, structure, there);
    }
    const long result = count(ioctl(fd, command, at));
    // The kernel writes its results to the place where it read the structure. Copy them back: a
    // descriptor among them must be closed.
    if (const std::uint8_t* const found = in_arena(at, there))
        std::memcpy(static_cast<void*>(structure), found, there);
    return result;
}

const std::uint8_t* Player::in_arena(std::uint64_t at, std::size_t bytes) const {
    const std::uint64_t offset = at - address_of(arena_);
    const bool is_before = offset <= kAbsent - bytes;
    const bool is_behind = offset >= kStructures && offset <= kStructuresEnd - bytes;
    return is_before || is_behind ? arena_ + offset : nullptr;
}

void Player::open_or_close(Bytes& bytes) {
    const std::uint8_t which = bytes.byte();
    if (which % 2 && !buffers_.empty()) {
        const std::size_t index = which / 2 % buffers_.size();
        close(buffers_[index]);
        buffers_.erase(buffers_.begin() + static_cast<std::ptrdiff_t>(index));
        return;
    }
    int& fd = devices_[which / 2 % devices_.size()];
    if (fd >= 0) close(fd);
    static constexpr int kFlags[] = {O_RDWR, O_RDONLY, O_WRONLY, O_RDWR | O_NONBLOCK};
    fd = open(KMES_DEVICE, kFlags[bytes.below(std::size(kFlags))] | O_CLOEXEC);
    count(fd);
}

void Player::attach(Bytes& bytes) {
    std::array<int, 1100> fds;
    fds.fill(-1);
    kmes_ioctl_attach attach{};
    attach.fds_address = address(bytes, fds.data());
    attach.count = static_cast<__u32>(bytes.byte() < 200 ? 1024 : bytes.number());
    attach.reserved = bytes.byte() < 250 ? 0 : static_cast<__u32>(bytes.number());
    const int fd = device(bytes);
    if (attach.count > fds.size()) attach.count = 1100;  // the results are written to our array
    if (call(bytes, fd, KMES_IOC_ATTACH, &attach)) return;
    const std::size_t count = std::min<std::size_t>(attach.count, fds.size());
    if (const std::uint8_t* const found = in_arena(attach.fds_address, count * sizeof(int)))
        std::memcpy(fds.data(), found, count * sizeof(int));
    for (std::size_t i = 0; i < count; i++) keep(fds[i]);
}

void Player::attach_cpu(Bytes& bytes) {
    kmes_ioctl_attach_cpu attach{};
    attach.cpu = static_cast<__u32>(bytes.byte() < 200 ? bytes.below(3) : bytes.number());
    attach.capacity = bytes.number();
    attach.fd = -1;
    if (call(bytes, device(bytes), KMES_IOC_ATTACH_CPU, &attach) == 0) keep(attach.fd);
}

void Player::identify(Bytes& bytes) {
    kmes_ioctl_identify identify{};
    identify.cpu = static_cast<__u32>(bytes.byte() < 200 ? bytes.below(3) : bytes.number());
    call(bytes, device(bytes), KMES_IOC_IDENTIFY, &identify);
}

void Player::emit(Bytes& bytes) {
    kmes_ioctl_emit emit{};
    emit.type_address = text(bytes);
    emit.type_len = static_cast<__u16>(bytes.number());
    emit.payload_address = text(bytes);
    emit.payload_len = static_cast<__u32>(bytes.number());
    emit.reserved = bytes.byte() < 250 ? 0 : 1;
    call(bytes, device(bytes), KMES_IOC_EMIT, &emit);
}

void Player::emit_batch(Bytes& bytes) {
    std::array<kmes_emit_entry, 16> entries{};
    for (kmes_emit_entry& entry : entries) {
        entry.type = reinterpret_cast<const void*>(text(bytes));
        entry.type_len = static_cast<__u16>(bytes.number());
        entry.payload = reinterpret_cast<const void*>(text(bytes));
        entry.payload_len = static_cast<__u32>(bytes.number());
        if (bytes.is_empty()) entry.type_len = 1;
    }
    kmes_ioctl_emit_batch batch{};
    batch.entries_address = address(bytes, entries.data());
    batch.count = static_cast<__u32>(bytes.byte() < 200 ? bytes.below(17) : bytes.number());
    call(bytes, device(bytes), KMES_IOC_EMIT_BATCH, &batch);
}

// Configures the real rings. Makes a large capacity invalid, since the memory does not suffice for
// it. Rare, because a resize takes more time than all other calls together.
void Player::configure(Bytes& bytes) {
    if (bytes.below(8)) return ask(bytes);
    kmes_ioctl_configure configure{};
    const std::uint8_t kind = bytes.byte();
    configure.buffer_capacity = kind < 200 ? 65536ull << kind % 2 : bytes.number();
    if (configure.buffer_capacity > 1u << 20 && configure.buffer_capacity <= 256u << 20)
        configure.buffer_capacity += 1;
    configure.max_event_size = bytes.byte() < 128 ? 0 : bytes.number();
    call(bytes, device(bytes), kind % 7 == 6 ? KMES_IOC_REGISTRY_AVAILABLE : KMES_IOC_CONFIGURE,
         &configure);
}

void Player::ask(Bytes& bytes) {
    if (bytes.below(2)) {
        kmes_ioctl_statistics statistics{};
        statistics.cpu = static_cast<__u32>(bytes.number());
        call(bytes, device(bytes), KMES_IOC_STATISTICS, &statistics);
        return;
    }
    std::array<kmes_buffer_info, 64> infos;
    kmes_ioctl_buffers buffers{};
    buffers.count = static_cast<__u32>(bytes.number());
    buffers.reserved = bytes.byte() < 250 ? 0 : 1;
    // The input chooses the number of slots. Results go to our array, or to no address.
    buffers.buffers_address =
        buffers.count <= infos.size() ? address(bytes, infos.data()) : address_of(arena_ + kAbsent);
    call(bytes, device(bytes), KMES_IOC_BUFFERS, &buffers);
}

void Player::create(Bytes& bytes) {
    std::array<__u64, 1024> positions{};
    positions[0] = bytes.byte() < 128 ? 0 : bytes.number();
    kmes_test_instance instance{};
    instance.capacity = capacity(bytes);
    instance.cpus = static_cast<__u32>(bytes.byte() < 230 ? 1 + bytes.below(4) : bytes.number());
    // Many CPUs have small rings, so the memory suffices. Other tests cover failed allocations.
    if (instance.cpus > 8 && instance.capacity > 4096) instance.capacity = 4096;
    instance.start_positions_address = bytes.byte() < 128 ? 0 : address(bytes, positions.data());
    instance.last_sequence = bytes.number();
    instance.first_generation = bytes.number();
    instance.clock_ns = bytes.number();
    instance.clock_step_ns = bytes.number();
    instance.max_event_size = bytes.byte() < 200 ? 65536 : bytes.number();
    instance.first_cpu_id = bytes.byte() < 200 ? 0 : static_cast<__u32>(bytes.number());
    instance.is_boot = bytes.byte() < 200 ? 0 : static_cast<__u32>(bytes.below(3));
    instance.first_futex_counter = static_cast<__u32>(bytes.number());
    instance.reserved = bytes.byte() < 250 ? 0 : 1;
    if (call(bytes, device(bytes), KMES_TEST_IOC_CREATE, &instance) == 0)
        last_instance_ = instance.id;
}

void Player::join(Bytes& bytes) {
    __u32 id = bytes.byte() < 200 ? last_instance_ : static_cast<__u32>(bytes.number());
    call(bytes, device(bytes), KMES_TEST_IOC_JOIN, &id);
}

void Player::operate(Bytes& bytes) {
    kmes_test_state state{};
    kmes_test_operation operation{};
    operation.verb = static_cast<__u32>(bytes.below(KMES_TEST_CANARY + 2));
    operation.value = bytes.word(2);
    operation.cpu = static_cast<__u32>(bytes.byte() < 230 ? bytes.below(2) : bytes.number());
    operation.type_len = static_cast<__u32>(bytes.number());
    operation.payload_len = bytes.number();
    operation.capacity = capacity(bytes);
    operation.bytes = bytes.number();
    operation.offset = bytes.number();
    operation.buffer = static_cast<__u32>(bytes.byte() < 230 ? bytes.below(4) : bytes.number());
    operation.positions = static_cast<__u32>(bytes.below(4));
    operation.shift = bytes.number();
    operation.style = static_cast<__u32>(bytes.below(3));
    operation.origin_class = static_cast<__u32>(bytes.below(3));
    operation.header_extra = bytes.byte() < 200 ? 0 : static_cast<__u32>(bytes.number());
    operation.type_address = text(bytes);
    operation.payload_address = text(bytes);
    operation.state_address = address(bytes, &state);
    if (call(bytes, device(bytes), KMES_TEST_IOC_OPERATE, &operation)) return;
    if (operation.verb == KMES_TEST_CANARY)
        canary_ = std::max<std::int64_t>(canary_, operation.result);
    if (operation.verb != KMES_TEST_OPEN || operation.result < 0) return;
    keep(static_cast<int>(operation.result));
}

// Makes an ioctl with any number, size and direction. Its letter is ours, or one that no device
// uses. Generic ioctls such as FIOASYNC have other letters.
void Player::unknown_ioctl(Bytes& bytes) {
    std::array<std::uint8_t, 1 << 14> structure{};
    for (std::size_t i = 0; i < 64; i++) structure[i] = bytes.byte();
    const unsigned long command = _IOC(bytes.below(4), bytes.byte() < 200 ? KMES_IOC_MAGIC : 0xee,
                                       bytes.byte(), bytes.word(2) & _IOC_SIZEMASK);
    // These two can return descriptors, so only their own methods may call them.
    if (command == KMES_IOC_ATTACH_CPU || command == KMES_TEST_IOC_OPERATE) return;
    const int fd = bytes.byte() < 200 ? device(bytes) : buffer(bytes);
    count(ioctl(fd, command, address(bytes, structure.data())));
}

void Player::map(Bytes& bytes) {
    static constexpr int kSharings[] = {
        MAP_SHARED,         MAP_SHARED, MAP_SHARED, MAP_PRIVATE, MAP_SHARED | MAP_POPULATE,
        MAP_SHARED_VALIDATE};
    const int fd = bytes.byte() < 245 ? buffer(bytes) : device(bytes);
    if (fd < 0 || mappings_.size() >= kMostMappings) return;
    const std::size_t length =
        static_cast<std::size_t>(bytes.byte() < 230 ? kPage + 2 * capacity(bytes) : bytes.number());
    const int protection =
        bytes.byte() < 200 ? PROT_READ | PROT_WRITE : static_cast<int>(bytes.below(8));
    const int sharing = kSharings[bytes.below(std::size(kSharings))];
    const auto offset = static_cast<off_t>(bytes.byte() < 230 ? 0 : bytes.number());
    void* const base = mmap(nullptr, length, protection, sharing, fd, offset);
    count(base == MAP_FAILED ? -1 : 0);
    if (base != MAP_FAILED) mappings_.push_back({static_cast<std::uint8_t*>(base), length});
}

// Lets the kernel access a mapping. The kernel returns EFAULT where our own access would raise a
// signal.
void Player::use_mapping(Bytes& bytes) {
    if (mappings_.empty()) return;
    const Mapping& mapping = mappings_[bytes.byte() % mappings_.size()];
    const std::size_t pages = mapping.bytes / kPage;
    if (pages == 0) return;
    const std::size_t first = bytes.word(2) % pages;
    const std::size_t some = (bytes.word(2) % (pages - first) + 1) * kPage;
    std::uint8_t* const at = mapping.base + first * kPage;
    switch (bytes.below(8)) {
        case 0:
            // Not munmap: another thread could map memory there, and clean_up would unmap it.
            mmap(at, some, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            break;
        case 1:
            count(mprotect(at, some, static_cast<int>(bytes.below(8))));
            break;
        case 2:
            count(madvise(at, some, static_cast<int>(bytes.below(26))));
            break;
        case 3:
            count(mlock(at, some));
            break;
        case 4: {
            // The argument of the ioctl is in a mapping of a buffer.
            count(ioctl(device(bytes), KMES_IOC_STATISTICS, at));
            break;
        }
        case 5: {
            int ends[2];
            if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) break;
            count(write(ends[1], at, std::min<std::size_t>(some, kPage)));
            count(read(ends[0], mapping.base + bytes.byte(), 8));
            close(ends[0]);
            close(ends[1]);
            break;
        }
        default: {
            kmes_ioctl_emit emit{};
            emit.type_address = address_of(at + bytes.byte());
            emit.type_len = static_cast<__u16>(bytes.number());
            emit.payload_address = address_of(at + bytes.word(2));
            emit.payload_len = static_cast<__u32>(bytes.number());
            count(ioctl(device(bytes), KMES_IOC_EMIT, &emit));
        }
    }
}

void Player::other_calls(Bytes& bytes) {
    const int fd = bytes.below(2) ? device(bytes) : buffer(bytes);
    std::uint8_t room[64] = {};
    struct stat status{};
    pollfd waited{fd, POLLIN | POLLOUT, 0};
    switch (bytes.below(10)) {
        case 0:
            count(read(fd, room, sizeof(room)));
            break;
        case 1:
            count(write(fd, room, sizeof(room)));
            break;
        case 2:
            count(lseek(fd, static_cast<off_t>(bytes.number()), static_cast<int>(bytes.below(5))));
            break;
        case 3:
            count(poll(&waited, 1, 0));
            break;
        case 4:
            count(ftruncate(fd, static_cast<off_t>(bytes.number())));
            break;
        case 5:
            count(fallocate(fd, static_cast<int>(bytes.below(64)), 0, 4096));
            break;
        case 6:
            count(fstat(fd, &status));
            break;
        case 7:
            count(fcntl(fd, F_SETFL, static_cast<int>(bytes.word(2) & ~O_ASYNC)));
            break;
        case 8:
            count(fsync(fd));
            break;
        default: {
            const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
            count(copy);
            keep(copy);
        }
    }
}

}  // namespace kmes::fuzz
