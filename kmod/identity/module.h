// SPDX-License-Identifier: GPL-2.0-only
//
// An instance of the module, operated by the ioctls of a test build on /dev/kmes.
#ifndef KMES_KMOD_IDENTITY_MODULE_H_
#define KMES_KMOD_IDENTITY_MODULE_H_

#include <vector>

#include "kmod/identity/side.h"

namespace kmes::identity {

// Closes its descriptor when destroyed. Move-only.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor();
    Descriptor(Descriptor&& other) noexcept;
    Descriptor& operator=(Descriptor&& other) noexcept;
    int get() const { return fd_; }

  private:
    int fd_ = -1;
};

// Throws std::system_error if there is no device.
Descriptor open_device();

// One mmap of a buffer's descriptor, which maps the whole buffer. Unmaps when destroyed. Move-only.
class DeviceMapping {
  public:
    DeviceMapping() = default;
    DeviceMapping(int fd, std::uint64_t capacity);
    ~DeviceMapping();
    DeviceMapping(DeviceMapping&& other) noexcept;
    DeviceMapping& operator=(DeviceMapping&& other) noexcept;
    std::span<std::uint8_t> bytes() const { return {base_, mapped_bytes_}; }
    std::uint64_t inode() const { return inode_; }

  private:
    std::uint8_t* base_ = nullptr;
    std::uint64_t mapped_bytes_ = 0;
    std::uint64_t inode_ = 0;
};

class Module : public Side {
  public:
    explicit Module(const InstanceOptions& options);
    std::int64_t operate(kmes_test_operation& operation) override;
    kmes_test_state state(unsigned cpu) override;
    std::span<std::uint8_t> mapping(unsigned cpu, std::size_t buffer) override;
    void take_new_buffer(unsigned cpu) override;

    // Attaches by KMES_IOC_ATTACH on an open file that has joined this instance. Returns a
    // descriptor for each CPU. On failure returns none, and sets *error.
    std::vector<Descriptor> attach(int* error) const;
    // Returns a descriptor of a buffer, by its index among those of its CPU.
    Descriptor open_buffer(unsigned cpu, std::size_t buffer);
    std::uint64_t inode(unsigned cpu, std::size_t buffer) const;
    unsigned cpus() const { return static_cast<unsigned>(buffers_.size()); }
    // Waits until every queued wake has been issued.
    void settle();

  private:
    struct Buffer {
        std::uint32_t number;  // in the instance
        DeviceMapping mapping;
    };

    Buffer current_buffer(unsigned cpu);

    Descriptor instance_;
    std::uint32_t id_ = 0;
    std::vector<std::vector<Buffer>> buffers_;  // of each CPU
};

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_MODULE_H_
