// SPDX-License-Identifier: MIT
//
// Buffers of the kernel module. The device answers kmes_attach inside the testee, so the
// descriptors are those of the module. (Their mmap is the module's too; see map_service.cc.) Knows
// injection and the ioctls, and nothing of the content of a buffer.

#include <fcntl.h>
#include <linux/kmes_test.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/injection.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {

// Executes KMES_IOC_ATTACH in the testee on a temporary open file. `question` is input and output.
// Returns 0 or -errno. Reports an error that the module never returns as `trouble`.
int64_t Tracer::Engine::ask_device(Injection& injection, Thread& thread, const AttachDevice& device,
                                   AttachQuestion& question, std::string& trouble) {
    const auto failed = [&trouble](const char* what, int64_t error) {
        trouble = std::string(what) + strerror(static_cast<int>(-error));
        return error;
    };
    const int64_t fd = open_path(injection, thread, device.path, O_RDWR, true);
    if (fd < 0) return failed("the testee could not open the device: ", fd);
    const auto device_fd = static_cast<uint64_t>(fd);
    const uint64_t scratch = process_of(thread).scratch;
    kmes_ioctl_attach attach{};
    attach.fds_address = question.fds_address;
    attach.count = question.count;
    int64_t result = -EFAULT;
    if (write_memory(thread.tid, scratch, &device.world, sizeof device.world))
        result = injection.call(SYS_ioctl, device_fd, KMES_TEST_IOC_JOIN, scratch);
    if (result < 0) failed("the testee could not join its world: ", result);
    if (result == 0) {
        write_memory(thread.tid, scratch, &attach, sizeof attach);
        result = injection.call(SYS_ioctl, device_fd, KMES_IOC_ATTACH, scratch);
        read_memory(thread.tid, scratch, &attach, sizeof attach);
    }
    injection.call(SYS_close, device_fd);
    question.count = attach.count;
    question.capacity = attach.capacity;
    return result;
}

// Passes on what the module returned, as an Attached event and in the testee's variables. `*count`
// can be written. If `*capacity` cannot, no descriptor is requested.
void Tracer::Engine::attach_by_device(Injection& injection, Thread& thread,
                                      const AttachDevice& device, const user_regs_struct& registers,
                                      bool can_tell_capacity, Attached& event) {
    const int32_t slots = event.request.slots_requested;
    const bool asks_for_fds = slots > 0 && can_tell_capacity;
    AttachQuestion question{registers.rdi, asks_for_fds ? static_cast<uint32_t>(slots) : 0, 0};
    std::string trouble;
    int64_t result = ask_device(injection, thread, device, question, trouble);
    const auto count = static_cast<int32_t>(question.count);
    if (result == -ERANGE && slots >= count) result = -EFAULT;
    event.error = static_cast<int>(-result);
    if (result == 0 || result == -ERANGE) {
        write_memory(thread.tid, registers.rsi, &count, sizeof count);
        event.count_written = count;
    }
    if (result == 0) {
        write_memory(thread.tid, registers.rdx, &question.capacity, sizeof question.capacity);
        event.capacity_bytes = question.capacity;
        event.fds.resize(question.count);
        read_memory(thread.tid, registers.rdi, event.fds.data(), question.count * sizeof(int));
        for (const int fd : event.fds) {
            const auto identity = identity_of_fd(thread.tid, fd);
            const auto buffer = identity ? buffer_of(*identity) : std::nullopt;
            if (!buffer) {
                trouble = "the device gave a descriptor of a buffer that the runner does not know";
                break;
            }
            event.buffers.push_back(*buffer);
            files_[*buffer].attach_call = attach_calls_;
        }
    }
    if (!trouble.empty()) push(thread, TracerTrouble{thread.tid, trouble});
}

// Makes a second mapping of a kernel buffer with the same shape. Its descriptor cannot be opened
// again by its name in /proc, so the testee gets a copy of the runner's.
int64_t Tracer::Engine::map_kernel_buffer(Injection& injection, const ServedFile& file,
                                          const MapRequest& request) {
    const int64_t runner = injection.call(SYS_pidfd_open, static_cast<uint64_t>(getpid()), 0);
    if (runner < 0) return runner;
    const int64_t fd = injection.call(SYS_pidfd_getfd, static_cast<uint64_t>(runner),
                                      static_cast<uint64_t>(file.metadata_fd), 0);
    injection.call(SYS_close, static_cast<uint64_t>(runner));
    if (fd < 0) return fd;
    const int64_t address =
        injection.call(SYS_mmap, 0, request.length_bytes, request.protection, request.flags,
                       static_cast<uint64_t>(fd), request.offset_bytes);
    injection.call(SYS_close, static_cast<uint64_t>(fd));
    return address;
}

}  // namespace kmes::conformance
