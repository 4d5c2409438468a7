// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/hostile/attacks.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kmes.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "kmes/abi.h"

namespace kmes::hostile {
namespace {

constexpr std::uint64_t kPage = KMES_PAGE_BYTES;
constexpr std::uint64_t kMetadata = KMES_METADATA_BYTES;
// The one page that a consumer may write: the metadata page, or its own in the later forms.
constexpr std::uint64_t kWritable = KMES_NEED_WAKE_OFFSET / kPage * kPage;
constexpr std::size_t kFutexOffset = offsetof(kmes_metadata_v1, futex_counter);
constexpr std::size_t kNeedWakeOffset = KMES_NEED_WAKE_OFFSET;

thread_local sigjmp_buf back;
thread_local volatile sig_atomic_t is_trying = 0;

void on_fault(int signal_number) {
    if (is_trying) siglongjmp(back, 1);
    signal(signal_number, SIG_DFL);
}

void handle_faults() {
    struct sigaction action{};
    action.sa_handler = on_fault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
}

// Returns false if the store faulted.
bool store(std::uint8_t* address, std::uint8_t value) {
    is_trying = 1;
    if (sigsetjmp(back, 1)) {
        is_trying = 0;
        return false;
    }
    *const_cast<volatile std::uint8_t*>(address) = value;
    is_trying = 0;
    return true;
}

}  // namespace

const char* Attacker::name(std::size_t kind) {
#define KMES_HOSTILE_NAME(name) #name,
    static constexpr const char* kNames[] = {KMES_HOSTILE_ATTACKS(KMES_HOSTILE_NAME)};
#undef KMES_HOSTILE_NAME
    return kNames[kind];
}

Attacker::Attacker(int fd, std::uint64_t capacity, std::uint64_t seed)
    : fd_(fd), bytes_(kMetadata + 2 * capacity), random_(seed) {
    handle_faults();
    map();
}

Attacker::~Attacker() {
    unmap();
}

void Attacker::map() {
    void* base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (base == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    base_ = static_cast<std::uint8_t*>(base);
}

void Attacker::unmap() {
    if (base_) munmap(base_, bytes_);
    base_ = nullptr;
}

// Maps the buffer again, over the holes that attacks have made. No other thread can have used the
// holes, because the process has only one.
void Attacker::mend() {
    void* const again = mmap(base_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_, 0);
    if (again == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
}

// Returns any byte outside of the page that consumers may write.
std::uint8_t* Attacker::read_only_byte() {
    const std::uint64_t at = random_.below(bytes_ - kPage);
    return base_ + (at < kWritable ? at : at + kPage);
}

std::span<std::uint8_t> Attacker::pages() {
    const std::uint64_t first = random_.below(bytes_ / kPage);
    const std::uint64_t count = random_.between(1, bytes_ / kPage - first);
    return {base_ + first * kPage, count * kPage};
}

void Attacker::try_store(std::uint8_t* address) {
    store(address, static_cast<std::uint8_t>(random_.next())) ? stores_that_passed_++
                                                              : stores_that_faulted_++;
}

void Attacker::attack() {
    using Method = void (Attacker::*)();
#define KMES_HOSTILE_POINTER(name) &Attacker::name,
    static constexpr Method kMethods[] = {KMES_HOSTILE_ATTACKS(KMES_HOSTILE_POINTER)};
#undef KMES_HOSTILE_POINTER
    // The first kind (random bytes) is the most frequent one, and comes between all others.
    const std::size_t kind = random_.chance(40) ? 0 : random_.below(kKinds);
    tried_[kind]++;
    (this->*kMethods[kind])();
}

void Attacker::scribble() {
    // Each piece has 1 to 64 bytes, or rarely the whole page.
    const std::uint64_t pieces = random_.chance(5) ? kPage : random_.between(1, 64);
    for (std::uint64_t i = 0; i < pieces; i++) {
        const std::uint64_t word = random_.chance(20) ? 0 : random_.next();
        const std::uint64_t bytes = 1ull << random_.below(4);
        const std::uint64_t limit = random_.chance(70) ? 192 : kPage;
        std::memcpy(base_ + kWritable + random_.below(limit / bytes) * bytes, &word, bytes);
    }
}

void Attacker::ask_for_wakes() {
    for (int i = 0; i < 20; i++)
        base_[kNeedWakeOffset] = static_cast<std::uint8_t>(random_.below(3));
}

void Attacker::advise() {
    static constexpr int kAdvices[] = {MADV_DONTNEED,
                                       MADV_REMOVE,
                                       MADV_FREE,
                                       MADV_COLD,
                                       MADV_PAGEOUT,
                                       MADV_DONTFORK,
                                       MADV_DOFORK,
                                       MADV_MERGEABLE,
                                       MADV_HUGEPAGE,
                                       MADV_DODUMP,
                                       MADV_WIPEONFORK,
                                       MADV_WILLNEED,
                                       22 /* POPULATE_READ */,
                                       23 /* POPULATE_WRITE */,
                                       24 /* DONTNEED_LOCKED */,
                                       25 /* COLLAPSE */};
    const std::span<std::uint8_t> some = pages();
    madvise(some.data(), some.size(), kAdvices[random_.below(std::size(kAdvices))]);
    is_trying = 1;
    if (!sigsetjmp(back, 1)) {
        static_cast<void>(*const_cast<volatile std::uint8_t*>(some.data()));
    }
    is_trying = 0;
}

void Attacker::protect() {
    const std::span<std::uint8_t> some = pages();
    mprotect(some.data(), some.size(), static_cast<int>(random_.below(8)));
    if (mprotect(some.data(), some.size(), PROT_READ | PROT_WRITE) == 0)
        for (int i = 0; i < 4; i++) try_store(read_only_byte());
    mprotect(base_, bytes_, PROT_READ | PROT_WRITE);
}

void Attacker::write_data() {
    for (int i = 0; i < 8; i++) try_store(read_only_byte());
}

// Makes the kernel write: a read() whose buffer is in the data.
void Attacker::read_into_data() {
    const int zero = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (read(zero, read_only_byte(), 64) > 0) stores_that_passed_++;
    close(zero);
    int ends[2];
    if (pipe(ends)) return;
    if (write(ends[1], "hostile!", 8) == 8 && read(ends[0], read_only_byte(), 8) > 0)
        stores_that_passed_++;
    close(ends[0]);
    close(ends[1]);
}

// Writes by /proc/self/mem, as a debugger does. It ignores the protection of a page.
void Attacker::write_by_proc() {
    const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    const std::uint64_t word = random_.next();
    std::uint8_t* const at = read_only_byte();
    if (pwrite(memory, &word, 1, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at))) > 0)
        stores_that_passed_++;
    std::uint8_t* const open_to_all = base_ + kWritable + random_.below(kPage - 8);
    pwrite(memory, &word, sizeof(word),
           static_cast<off_t>(reinterpret_cast<std::uintptr_t>(open_to_all)));
    close(memory);
}

void Attacker::write_by_process_vm() {
    std::uint64_t word = random_.next();
    const iovec ours{&word, 1};
    const iovec theirs{read_only_byte(), 1};
    if (process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0) > 0) stores_that_passed_++;
}

void Attacker::remap() {
    const std::uint64_t other = kPage * random_.between(1, 2 * bytes_ / kPage);
    const std::uint64_t old = random_.chance(25) ? 0 : bytes_;
    void* const moved = mremap(base_, old, other, random_.chance(50) ? MREMAP_MAYMOVE : 0, nullptr);
    if (moved == MAP_FAILED) return;
    if (old == 0) {
        munmap(moved, other);
        return;
    }
    // An access beyond the buffer's end must fault.
    base_ = static_cast<std::uint8_t*>(moved);
    if (other > bytes_) try_store(base_ + bytes_);
    munmap(base_, other);
    map();
}

void Attacker::unmap_parts() {
    for (int i = 0; i < 3; i++) {
        const std::span<std::uint8_t> some = pages();
        munmap(some.data(), some.size());
    }
    mend();
}

void Attacker::map_otherwise() {
    const std::uint64_t length =
        random_.chance(50) ? bytes_ : kPage * random_.between(1, 2 * bytes_ / kPage);
    const int protection = static_cast<int>(random_.below(8));
    const int sharing = random_.chance(50) ? MAP_PRIVATE : MAP_SHARED;
    const std::uint64_t offset = random_.chance(50) ? 0 : kPage * random_.below(40);
    const int more = random_.chance(20) ? MAP_POPULATE | MAP_LOCKED : 0;
    void* const base =
        mmap(nullptr, length, protection, sharing | more, fd_, static_cast<off_t>(offset));
    if (base == MAP_FAILED) return;
    auto* const bytes = static_cast<std::uint8_t*>(base);
    // A store to a private mapping would change only a copy.
    if (sharing == MAP_SHARED && length > kMetadata) try_store(bytes + kMetadata);
    munmap(base, length);
}

void Attacker::resize_file() {
    static_cast<void>(ftruncate(fd_, static_cast<off_t>(random_.below(2 * bytes_))));
    fallocate(fd_, static_cast<int>(random_.below(128)), static_cast<off_t>(random_.below(bytes_)),
              static_cast<off_t>(random_.between(1, bytes_)));
    fcntl(fd_, F_ADD_SEALS, static_cast<int>(random_.below(64)));
    fchmod(fd_, static_cast<mode_t>(random_.below(512)));
}

void Attacker::write_file() {
    std::uint8_t bytes[64] = {};
    lseek(fd_, static_cast<off_t>(random_.below(bytes_)), SEEK_SET);
    if (write(fd_, bytes, sizeof(bytes)) > 0) stores_that_passed_++;
    if (pwrite(fd_, bytes, sizeof(bytes), static_cast<off_t>(random_.below(bytes_))) > 0)
        stores_that_passed_++;
    static_cast<void>(read(fd_, bytes, sizeof(bytes)));
    copy_file_range(fd_, nullptr, fd_, nullptr, kPage, 0);
}

void Attacker::open_again() {
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd_);
    static constexpr int kFlags[] = {
        O_RDWR, O_RDWR | O_TRUNC, O_WRONLY | O_APPEND, O_RDONLY | O_DIRECT, O_PATH, O_RDONLY};
    const int fd = open(path, kFlags[random_.below(std::size(kFlags))] | O_CLOEXEC);
    if (fd < 0) return;
    void* const base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base != MAP_FAILED) {
        try_store(static_cast<std::uint8_t*>(base) + kMetadata);
        munmap(base, bytes_);
    }
    close(fd);
}

// The child inherits the mapping, and its exit status says whether its stores succeeded.
void Attacker::fork_and_write() {
    const pid_t child = fork();
    if (child == 0) {
        store(base_ + kWritable + random_.below(192), static_cast<std::uint8_t>(random_.next()));
        mprotect(base_, bytes_, PROT_READ | PROT_WRITE);
        _exit(store(read_only_byte(), 0x5a) ? 1 : 0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return;
    WIFEXITED(status) && WEXITSTATUS(status) == 1 ? stores_that_passed_++ : stores_that_faulted_++;
}

void Attacker::lock_and_sync() {
    const std::span<std::uint8_t> some = pages();
    mlock(some.data(), some.size());
    msync(some.data(), some.size(), random_.chance(50) ? MS_SYNC : MS_ASYNC | MS_INVALIDATE);
    munlock(some.data(), some.size());
    fsync(fd_);
    syscall(SYS_mbind, base_, bytes_, random_.below(4), nullptr, 0, random_.below(8));
    // The call unmaps the page before it fails.
    syscall(SYS_remap_file_pages, base_, kPage, 0, random_.below(8), 0);
    mend();
}

void Attacker::sleep_on_it() {
    const timespec limit{0, static_cast<long>(random_.below(300000))};
    std::uint8_t* const word = random_.chance(70) ? base_ + kFutexOffset : read_only_byte();
    auto* const aligned = reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::uintptr_t>(word) &
                                                           ~std::uintptr_t{3});
    static constexpr int kOperations[] = {FUTEX_WAIT,      FUTEX_WAKE,        FUTEX_LOCK_PI,
                                          FUTEX_REQUEUE,   FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP,
                                          FUTEX_TRYLOCK_PI};
    const int operation = kOperations[random_.below(std::size(kOperations))];
    // A wait without a timeout could be endless: bytes of the page can name a dead owner of the
    // lock. For FUTEX_LOCK_PI the timeout is absolute, and in the past.
    const bool has_limit = operation == FUTEX_WAIT || operation == FUTEX_LOCK_PI;
    syscall(SYS_futex, aligned, operation, operation == FUTEX_WAIT ? *aligned : 1,
            has_limit ? &limit : nullptr, base_ + kFutexOffset, random_.next());
}

void Attacker::splice_pages() {
    int ends[2];
    if (pipe(ends)) return;
    const iovec some{random_.chance(50) ? base_ : base_ + kMetadata, kPage};
    const ssize_t given = vmsplice(ends[1], &some, 1, SPLICE_F_GIFT | SPLICE_F_NONBLOCK);
    if (given > 0) {
        std::uint8_t bytes[kPage];
        static_cast<void>(read(ends[0], bytes, sizeof(bytes)));
    }
    splice(fd_, nullptr, ends[1], nullptr, kPage, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    static_cast<void>(write(ends[1], "x", 1));
    if (splice(ends[0], nullptr, fd_, nullptr, 1, SPLICE_F_NONBLOCK) > 0) stores_that_passed_++;
    close(ends[0]);
    close(ends[1]);
}

void Attacker::odd_calls() {
    std::uint64_t room[64] = {};
    ioctl(fd_, random_.next(), room);
    fcntl(fd_, static_cast<int>(random_.between(1, 15)), 0);
    const int copy = dup(fd_);
    if (copy >= 0) close(copy);
    syscall(SYS_membarrier, random_.below(256), 0, 0);
    std::uint8_t resident[16];
    mincore(base_, std::min<std::uint64_t>(bytes_, 16 * kPage), resident);
}

// Attaches to one CPU of the real rings; the CPU's number may be invalid. Stores to the data must
// fail. KMES_IOC_IDENTIFY and fstat must agree, because no process resizes the real rings.
void Attacker::attach_to_one() {
    const int device = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);
    if (device < 0) return;
    kmes_ioctl_identify identify{};
    identify.cpu = static_cast<__u32>(random_.chance(70) ? random_.below(3) : random_.next());
    kmes_ioctl_attach_cpu attach{};
    attach.cpu = identify.cpu;
    attach.fd = static_cast<__s32>(random_.next());
    const bool is_known = ioctl(device, KMES_IOC_IDENTIFY, &identify) == 0;
    if (ioctl(device, KMES_IOC_ATTACH_CPU, &attach) == 0) {
        struct stat status{};
        if (!is_known || fstat(attach.fd, &status) || status.st_ino != identify.inode)
            stores_that_passed_++;
        const std::uint64_t bytes = kMetadata + 2 * attach.capacity;
        void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, attach.fd, 0);
        close(attach.fd);
        if (base != MAP_FAILED) {
            try_store(static_cast<std::uint8_t*>(base) + kMetadata +
                      random_.below(2 * attach.capacity));
            munmap(base, bytes);
        }
    }
    close(device);
}

}  // namespace kmes::hostile
