// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/identity/module.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "kmes/abi.h"

namespace kmes::identity {
namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

bool names_a_buffer(std::uint32_t verb) {
    return verb == KMES_TEST_NUDGE || verb == KMES_TEST_WRITE || verb == KMES_TEST_WAKE ||
           verb == KMES_TEST_OPEN;
}

}  // namespace

Descriptor::~Descriptor() {
    if (fd_ >= 0) close(fd_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

Descriptor open_device() {
    const int fd = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);
    if (fd < 0) fail("cannot open " KMES_DEVICE);
    return Descriptor(fd);
}

DeviceMapping::DeviceMapping(int fd, std::uint64_t capacity)
    : mapped_bytes_(KMES_METADATA_BYTES + 2 * capacity) {
    struct stat status{};
    if (fstat(fd, &status)) fail("fstat of a buffer");
    inode_ = status.st_ino;
    void* base = mmap(nullptr, mapped_bytes_, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) fail("mmap of " + std::to_string(mapped_bytes_) + " bytes of a buffer");
    base_ = static_cast<std::uint8_t*>(base);
}

DeviceMapping::~DeviceMapping() {
    if (base_) munmap(base_, mapped_bytes_);
}

DeviceMapping::DeviceMapping(DeviceMapping&& other) noexcept {
    *this = std::move(other);
}

DeviceMapping& DeviceMapping::operator=(DeviceMapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(inode_, other.inode_);
    return *this;
}

Module::Module(const InstanceOptions& options) : instance_(open_device()) {
    const std::vector<__u64> positions(options.cpus, options.position);
    kmes_test_instance instance{};
    instance.capacity = options.capacity;
    instance.start_positions_address = address_of(positions.data());
    instance.last_sequence = options.sequence;
    instance.clock_ns = options.clock_ns;
    instance.clock_step_ns = options.clock_step_ns;
    instance.max_event_size = options.max_event_size;
    instance.cpus = options.cpus;
    instance.first_cpu_id = options.first_cpu_id;
    instance.is_boot = options.is_boot;
    if (ioctl(instance_.get(), KMES_TEST_IOC_CREATE, &instance))
        fail("KMES_TEST_IOC_CREATE (is this a test build of the module?)");
    id_ = instance.id;
    buffers_.resize(options.cpus);
    for (unsigned cpu = 0; cpu < options.cpus; cpu++) buffers_[cpu].push_back(current_buffer(cpu));
}

std::int64_t Module::operate(kmes_test_operation& operation) {
    const std::uint32_t buffer = operation.buffer;
    if (names_a_buffer(operation.verb))
        operation.buffer = buffers_.at(operation.cpu).at(buffer).number;
    if (ioctl(instance_.get(), KMES_TEST_IOC_OPERATE, &operation))
        fail("KMES_TEST_IOC_OPERATE, verb " + std::to_string(operation.verb));
    operation.buffer = buffer;
    return operation.result;
}

kmes_test_state Module::state(unsigned cpu) {
    kmes_test_state state{};
    kmes_test_operation operation{};
    operation.verb = KMES_TEST_STATE;
    operation.cpu = cpu;
    operation.state_address = address_of(&state);
    operate(operation);
    return state;
}

std::span<std::uint8_t> Module::mapping(unsigned cpu, std::size_t buffer) {
    return buffers_.at(cpu).at(buffer).mapping.bytes();
}

Module::Buffer Module::current_buffer(unsigned cpu) {
    const kmes_test_state now = state(cpu);
    kmes_test_operation operation{};
    operation.verb = KMES_TEST_OPEN;
    operation.cpu = cpu;
    operation.buffer = now.buffer;
    if (ioctl(instance_.get(), KMES_TEST_IOC_OPERATE, &operation)) fail("KMES_TEST_OPEN");
    const Descriptor fd(static_cast<int>(operation.result));
    return {now.buffer, DeviceMapping(fd.get(), now.capacity)};
}

void Module::take_new_buffer(unsigned cpu) {
    buffers_.at(cpu).push_back(current_buffer(cpu));
}

Descriptor Module::open_buffer(unsigned cpu, std::size_t buffer) {
    kmes_test_operation operation{};
    operation.verb = KMES_TEST_OPEN;
    operation.cpu = cpu;
    operation.buffer = static_cast<std::uint32_t>(buffer);
    return Descriptor(static_cast<int>(operate(operation)));
}

std::uint64_t Module::inode(unsigned cpu, std::size_t buffer) const {
    return buffers_.at(cpu).at(buffer).mapping.inode();
}

std::vector<Descriptor> Module::attach(int* error) const {
    const Descriptor file = open_device();
    std::uint32_t id = id_;
    if (ioctl(file.get(), KMES_TEST_IOC_JOIN, &id)) fail("KMES_TEST_IOC_JOIN");
    std::vector<int> fds(buffers_.size(), -1);
    kmes_ioctl_attach attach{};
    attach.fds_address = address_of(fds.data());
    attach.count = static_cast<__u32>(fds.size());
    *error = ioctl(file.get(), KMES_IOC_ATTACH, &attach) ? errno : 0;
    std::vector<Descriptor> result;
    for (const int fd : fds)
        if (!*error) result.emplace_back(fd);
    return result;
}

void Module::settle() {
    kmes_test_operation operation{};
    operation.verb = KMES_TEST_SETTLE;
    operate(operation);
}

}  // namespace kmes::identity
