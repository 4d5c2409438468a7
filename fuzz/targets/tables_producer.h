// SPDX-License-Identifier: MIT
//
// A producer in a process of its own, so that a program that closes all its descriptors closes none
// of the producer's. It ends with the process that made it. Knows no property.
#ifndef KMES_FUZZ_TARGETS_TABLES_PRODUCER_H_
#define KMES_FUZZ_TARGETS_TABLES_PRODUCER_H_

#include <cstdint>

namespace kmes::fuzz {

inline constexpr int kTablesCpus = 2;
inline constexpr std::uint64_t kTablesCapacity = 65536;
inline constexpr std::uint64_t kTablesOtherCapacity = 131072;
// Descriptor numbers from here on belong to the fuzzer: a program closes none of them.
inline constexpr int kFirstReserved = 128;

class TablesProducer {
  public:
    // The producer of this process, made at the first call; KMES_SOCKET names it from then on.
    static TablesProducer& get();

    // Resizes to the other of two capacities; from any further capacity, to the first.
    void resize();
    void reset();
    // Retires the producer, and starts another one at the same address.
    void restart();

  private:
    TablesProducer();
    void order(char what);

    int orders_ = -1;
    int answers_ = -1;
    std::uint64_t capacity_ = kTablesCapacity;
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_TABLES_PRODUCER_H_
