// SPDX-License-Identifier: GPL-2.0-only
//
// The attacks of a hostile consumer with the descriptor of one buffer, drawn from a seed. They
// write random bytes to all writable bytes, and make each call on the descriptor or the mapping
// that might permit more. The caller compares bytes to find out whether an attack succeeded.
#ifndef KMES_KMOD_HOSTILE_ATTACKS_H_
#define KMES_KMOD_HOSTILE_ATTACKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "props/script/random.h"

namespace kmes::hostile {

// X(name). A run counts each kind, since it proves nothing about an attack that it never tried.
#define KMES_HOSTILE_ATTACKS(X) \
    X(scribble)                 \
    X(ask_for_wakes)            \
    X(advise)                   \
    X(protect)                  \
    X(write_data)               \
    X(read_into_data)           \
    X(write_by_proc)            \
    X(write_by_process_vm)      \
    X(remap)                    \
    X(unmap_parts)              \
    X(map_otherwise)            \
    X(resize_file)              \
    X(write_file)               \
    X(open_again)               \
    X(fork_and_write)           \
    X(lock_and_sync)            \
    X(sleep_on_it)              \
    X(splice_pages)             \
    X(odd_calls)                \
    X(attach_to_one)

class Attacker {
  public:
    // The caller keeps `fd`; `capacity` is that of its buffer. Throws std::system_error if the
    // buffer cannot be mapped.
    Attacker(int fd, std::uint64_t capacity, std::uint64_t seed);
    ~Attacker();
    Attacker(const Attacker&) = delete;
    Attacker& operator=(const Attacker&) = delete;

    // Makes one attack. Call it in a process of one thread that does nothing else. It makes holes
    // in the address space, and handles SIGSEGV and SIGBUS.
    void attack();

    static constexpr std::size_t kKinds = 0
#define KMES_HOSTILE_ONE(name) +1
        KMES_HOSTILE_ATTACKS(KMES_HOSTILE_ONE)
#undef KMES_HOSTILE_ONE
        ;
    static const char* name(std::size_t kind);
    const std::array<std::uint64_t, kKinds>& tried() const { return tried_; }
    // Returns the number of stores that should have faulted but did not.
    std::uint64_t stores_that_passed() const { return stores_that_passed_; }
    std::uint64_t stores_that_faulted() const { return stores_that_faulted_; }

  private:
#define KMES_HOSTILE_METHOD(name) void name();
    KMES_HOSTILE_ATTACKS(KMES_HOSTILE_METHOD)
#undef KMES_HOSTILE_METHOD

    void map();
    void unmap();
    void mend();
    std::uint8_t* read_only_byte();   // any
    std::span<std::uint8_t> pages();  // a part of the mapping
    void try_store(std::uint8_t* address);

    const int fd_;
    const std::uint64_t bytes_;
    props::Random random_;
    std::uint8_t* base_ = nullptr;
    std::array<std::uint64_t, kKinds> tried_{};
    std::uint64_t stores_that_passed_ = 0, stores_that_faulted_ = 0;
};

}  // namespace kmes::hostile

#endif  // KMES_KMOD_HOSTILE_ATTACKS_H_
