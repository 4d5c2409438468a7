// SPDX-License-Identifier: GPL-2.0-only
//
// The producer in this process, with which the module is compared: the core as compiled for
// userspace, with the memory of kmes/user/memory.h and an injected clock.
#ifndef KMES_KMOD_IDENTITY_USERSPACE_H_
#define KMES_KMOD_IDENTITY_USERSPACE_H_

#include <memory>
#include <mutex>
#include <vector>

#include "kmes/call.h"
#include "kmes/ring.h"
#include "kmes/user/memory.h"
#include "kmod/identity/operations.h"
#include "kmod/identity/side.h"

namespace kmes::identity {

class Userspace : public Side {
  public:
    explicit Userspace(const InstanceOptions& options);
    std::int64_t operate(kmes_test_operation& operation) override;
    kmes_test_state state(unsigned cpu) override;
    std::span<std::uint8_t> mapping(unsigned cpu, std::size_t buffer) override;
    void take_new_buffer(unsigned cpu) override;

    std::uint64_t clock_ns() const { return clock_ns_; }
    // Counts the called functions of the core. The module has called the same ones.
    const OperationTable& table() const { return table_; }

  private:
    struct Cpu {
        kmes_platform platform{};
        kmes_cpu cpu{};
        kmes_batch batch{};
        kmes_reservation reservation{};
        kmes_swap swap{};
        std::vector<BufferHandle> buffers;
        BufferHandle next;  // of the current or last swap
    };

    int emit_entry(Cpu& cpu, const kmes_event_input& input);
    std::int64_t emit(Cpu& cpu, const kmes_test_operation& operation);
    std::int64_t call(Cpu& cpu, kmes_test_operation& operation);
    std::int64_t batch(Cpu& cpu, const kmes_test_operation& operation);
    std::int64_t reservation(Cpu& cpu, const kmes_test_operation& operation);
    std::int64_t swap(Cpu& cpu, const kmes_test_operation& operation);
    std::int64_t give_up(Cpu& cpu, const kmes_test_operation& operation);
    std::int64_t counted(CoreOperation operation, std::int64_t result);
    BufferHandle make_buffer(const Cpu& cpu, std::uint64_t capacity);

    const InstanceOptions options_;
    std::uint64_t clock_ns_;
    std::uint64_t clock_step_ns_;
    std::vector<std::unique_ptr<Cpu>> cpus_;
    std::vector<std::uint8_t> staging_;
    OperationTable table_;
};

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_USERSPACE_H_
