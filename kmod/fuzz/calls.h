// SPDX-License-Identifier: GPL-2.0-only
//
// Makes the calls of an input: the ioctls of <linux/kmes.h> and <linux/kmes_test.h> with arguments
// that are correct, nearly correct or wrong. It also makes unknown ioctls, mappings, and other
// calls on the descriptors. A player belongs to one thread; all threads share the devices of
// `Shared`.
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

    // Plays the input, and then closes and unmaps everything.
    void play(const Input& input);
    std::uint64_t calls() const { return calls_; }
    std::uint64_t succeeded() const { return succeeded_; }
    // The highest answer so far of the canary of the test build (KMES_TEST_CANARY).
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
    // Makes an ioctl with a structure. The input decides whether it is mapped, half mapped or
    // unmapped.
    template <typename Structure>
    long call(Bytes& bytes, int fd, unsigned long command, Structure* structure);
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
    std::uint32_t last_world_ = 0;
    std::uint8_t* arena_;  // a read-only page, some writable pages, and an unmapped one
    std::uint64_t calls_ = 0, succeeded_ = 0;
    std::int64_t canary_ = 0;
};

}  // namespace kmes::fuzz

#endif  // KMES_KMOD_FUZZ_CALLS_H_
