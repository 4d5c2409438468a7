// SPDX-License-Identifier: GPL-2.0-only
//
// Makes the calls of an input: the ioctls of <linux/kmes.h> and <linux/kmes_test.h> with valid and
// invalid arguments, unknown ioctls, mappings, and other calls on the descriptors. A player belongs
// to one thread. All threads share the devices of `SharedDevices`.
#ifndef KMES_KMOD_FUZZ_CALLS_H_
#define KMES_KMOD_FUZZ_CALLS_H_

#include <linux/kmes_test.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmod/fuzz/input.h"
#include "kmod/identity/module.h"

namespace kmes::fuzz {

inline constexpr std::size_t kSharedDevices = 2;
using SharedDevices = std::array<identity::Descriptor, kSharedDevices>;

class Player {
  public:
    explicit Player(const SharedDevices& shared);
    ~Player();
    Player(const Player&) = delete;
    Player& operator=(const Player&) = delete;

    // Plays the input, and then closes and unmaps everything. Earlier inputs affect it only by the
    // shared devices.
    void play(const Input& input);
    std::uint64_t calls() const { return calls_; }
    std::uint64_t succeeded() const { return succeeded_; }
    // Returns the highest result of KMES_TEST_CANARY so far.
    std::int64_t canary() const { return canary_; }

  private:
    struct Mapping {
        std::uint8_t* base;
        std::size_t bytes;
    };

    void one(Bytes& bytes);
    int device(Bytes& bytes);
    int buffer(Bytes& bytes);
    std::uint64_t address(Bytes& bytes, const void* good);
    std::uint64_t text(Bytes& bytes);
    std::uint64_t capacity(Bytes& bytes);
    // Makes an ioctl with a structure. The input decides whether the structure is mapped, partly
    // mapped or unmapped, or whether the kernel gets another address. Afterwards `structure` has
    // the kernel's results.
    template <typename Structure>
    long call(Bytes& bytes, int fd, unsigned long command, Structure* structure);
    // Returns a pointer to these bytes of our arena, or nullptr if not all of them are mapped.
    const std::uint8_t* in_arena(std::uint64_t at, std::size_t bytes) const;
    // Resets the texts of the arena, from this offset on, to their first content.
    void fill(std::size_t from);
    long count(long result);
    // Takes ownership of a buffer's descriptor: keeps it for other calls, or closes it.
    void keep(int fd);

    void open_or_close(Bytes& bytes);
    void attach(Bytes& bytes);
    void attach_cpu(Bytes& bytes);
    void identify(Bytes& bytes);
    void emit(Bytes& bytes);
    void emit_batch(Bytes& bytes);
    void configure(Bytes& bytes);
    void ask(Bytes& bytes);
    void create(Bytes& bytes);
    void join(Bytes& bytes);
    void operate(Bytes& bytes);
    void unknown_ioctl(Bytes& bytes);
    void map(Bytes& bytes);
    void use_mapping(Bytes& bytes);
    void other_calls(Bytes& bytes);
    void clean_up();

    const SharedDevices& shared_;
    std::array<int, 4> devices_{-1, -1, -1, -1};
    std::vector<int> buffers_;
    std::vector<Mapping> mappings_;
    std::uint32_t last_instance_ = 0;
    std::uint8_t* arena_;  // mapped and unmapped pages; calls.cc has their offsets
    std::uint64_t calls_ = 0, succeeded_ = 0;
    std::int64_t canary_ = 0;
};

}  // namespace kmes::fuzz

#endif  // KMES_KMOD_FUZZ_CALLS_H_
