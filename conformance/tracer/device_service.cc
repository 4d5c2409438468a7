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
#include "conformance/tracer/memory.h"

namespace kmes::conformance {

namespace {

// Executes the ioctl in the testee, with its argument at `scratch`.
template <typename Argument>
int64_t call_device(Injection& injection, pid_t tid, uint64_t fd, uint64_t request,
                    uint64_t scratch, Argument& argument) {
    if (!write_memory(tid, scratch, &argument, sizeof argument)) return -EFAULT;
    const int64_t result = injection.call(SYS_ioctl, fd, request, scratch);
    read_memory(tid, scratch, &argument, sizeof argument);
    return result;
}

int64_t attach_all(Injection& injection, pid_t tid, uint64_t fd, uint64_t scratch,
                   AttachQuestion& question) {
    kmes_ioctl_attach attach{};
    attach.fds_address = question.fds_address;
    attach.count = question.count;
    const int64_t result = call_device(injection, tid, fd, KMES_IOC_ATTACH, scratch, attach);
    question.count = attach.count;
    question.capacity = attach.capacity;
    return result;
}

int64_t attach_cpu(Injection& injection, pid_t tid, uint64_t fd, uint64_t scratch,
                   AttachQuestion& question) {
    kmes_ioctl_attach_cpu attach{};
    attach.cpu = *question.cpu;
    attach.fd = -1;
    const int64_t result = call_device(injection, tid, fd, KMES_IOC_ATTACH_CPU, scratch, attach);
    question.fd = attach.fd;
    question.capacity = attach.capacity;
    return result;
}

}  // namespace

// Attaches in the testee, on a temporary open file. `question` is input and output. Returns 0 or
// -errno. Reports an error that the module never returns as `trouble`.
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
    uint32_t instance = device.instance;
    int64_t result =
        call_device(injection, thread.tid, device_fd, KMES_TEST_IOC_JOIN, scratch, instance);
    if (result < 0)
        failed("the testee could not join its instance: ", result);
    else if (question.cpu)
        result = attach_cpu(injection, thread.tid, device_fd, scratch, question);
    else
        result = attach_all(injection, thread.tid, device_fd, scratch, question);
    injection.call(SYS_close, device_fd);
    return result;
}

// Passes on the results of the module, as an Attached event and in the testee's variables. `*count`
// can be written. If `*capacity` cannot, no descriptor is requested.
void Tracer::Engine::attach_by_device(Injection& injection, Thread& thread,
                                      const AttachDevice& device, const user_regs_struct& registers,
                                      bool can_tell_capacity, Attached& event) {
    const int32_t slots = event.request.slots_requested;
    const bool asks_for_fds = slots > 0 && can_tell_capacity;
    AttachQuestion question;
    question.fds_address = registers.rdi;
    question.count = asks_for_fds ? static_cast<uint32_t>(slots) : 0;
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
        note_device_fds(thread, event, trouble);
    }
    if (!trouble.empty()) push(thread, TracerTrouble{thread.tid, trouble});
}

// The same for one CPU. `*capacity` can be written.
void Tracer::Engine::attach_cpu_by_device(Injection& injection, Thread& thread,
                                          const AttachDevice& device, uint64_t capacity_at,
                                          Attached& event) {
    AttachQuestion question;
    question.cpu = event.request.cpu;
    std::string trouble;
    const int64_t result = ask_device(injection, thread, device, question, trouble);
    // Those forms have no EAGAIN before there are rings (docs/layouts.md).
    event.error = result == -EAGAIN ? ENOMEM : static_cast<int>(-result);
    if (result == 0) {
        write_memory(thread.tid, capacity_at, &question.capacity, sizeof question.capacity);
        event.capacity_bytes = question.capacity;
        event.fds = {question.fd};
        event.result = question.fd;
        note_device_fds(thread, event, trouble);
    }
    if (!trouble.empty()) push(thread, TracerTrouble{thread.tid, trouble});
}

void Tracer::Engine::note_device_fds(Thread& thread, Attached& event, std::string& trouble) {
    for (const int fd : event.fds) {
        const auto identity = identity_of_fd(thread.tid, fd);
        const auto buffer = identity ? buffers_.find(*identity) : std::nullopt;
        if (!buffer) {
            trouble = "the device gave a descriptor of a buffer that the runner does not know";
            return;
        }
        event.buffers.push_back(*buffer);
        buffers_.note_attached(*buffer, attach_.calls);
    }
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
