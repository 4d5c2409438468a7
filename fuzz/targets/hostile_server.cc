// SPDX-License-Identifier: MIT
//
// See hostile_server.h.
#include "fuzz/targets/hostile_server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fuzz/fail.h"
#include "fuzz/free_address.h"

namespace kmes::fuzz {
namespace {

constexpr std::uint64_t kMaxCpus = 3;
constexpr std::size_t kMaxDescriptors = 253;
constexpr int kMaxRequests = 64;  // in one call of libkmes
constexpr int kMetadataSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int kDataSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
constexpr int kSeals[] = {
    0, F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL};
constexpr std::uint64_t kCapacities[] = {0,
                                         3000,
                                         4096,
                                         HostileServer::kCapacityBytes * 2,
                                         std::uint64_t{1} << 31,
                                         std::uint64_t{1} << 32,
                                         std::uint64_t{1} << 63,
                                         ~std::uint64_t{0}};
// A silent server costs a call this much time, instead of its 30 s.
constexpr struct timeval kLimit = {0, 1000};

HostileServer* serving = nullptr;

ssize_t really_send(int fd, const struct msghdr* message, int flags) {
    return syscall(SYS_sendmsg, fd, message, flags);
}

std::string metadata_page() {
    kmes_metadata_v1 page = {};
    const char magic[] = KMES_MAGIC_INITIALIZER;

    std::memcpy(page.magic, magic, std::min(sizeof(magic), sizeof(page.magic)));
    page.version = KMES_VERSION_1;
    page.capacity = HostileServer::kCapacityBytes;
    page.data_offset = KMES_METADATA_BYTES;
    page.generation = 1;
    return {reinterpret_cast<const char*>(&page), sizeof(page)};
}

}  // namespace

HostileServer::HostileServer(FuzzedBytes* bytes) : bytes_(*bytes) {
    static const std::string address = free_address("client");
    struct sockaddr_un name;
    socklen_t length;

    setenv(KMES_SOCKET_ENVIRONMENT, address.c_str(), 1);
    expect_equal(kmes_socket_address(address.c_str(), &name, &length), 0, "the address' error");
    listening_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    expect_equal(bind(listening_, reinterpret_cast<struct sockaddr*>(&name), length), 0,
                 "the result of bind");
    expect_equal(listen(listening_, 8), 0, "the result of listen");
    for (std::uint64_t left = 1 + bytes_.below(kMaxCpus); left > 0; --left)
        cpus_.push_back(make_files());
    serving = this;
}

HostileServer::~HostileServer() {
    serving = nullptr;
    for (const int fd : connections_) close(fd);
    if (listening_ >= 0) close(listening_);
}

// -- Passed files --

int HostileServer::make_file(std::string_view text, std::uint64_t bytes, int seals) {
    const std::uint8_t shape = bytes_.take<std::uint8_t>();
    const auto kinds = static_cast<std::uint64_t>(PassedFiles::Kind::kCount);
    const std::uint64_t lengths[] = {0, bytes - 1, bytes / 2, bytes + 1, 2 * bytes, bytes};

    if (shape < 0xA0) return files_.make_memory(text, bytes, true, seals);
    if (shape < 0xC0) return files_.make(static_cast<PassedFiles::Kind>(shape % kinds));
    if (shape < 0xE0)
        return files_.make_memory(text, bytes, true, kSeals[shape % std::size(kSeals)]);
    if (shape < 0xF0) return files_.make_memory("", bytes, false, seals);
    const std::uint64_t length = lengths[shape % std::size(lengths)];

    return files_.make_memory(text.substr(0, length), length, true, seals);
}

HostileServer::Files HostileServer::make_files() {
    std::string page = metadata_page();
    Files files;

    for (std::uint64_t left = bytes_.below(4); left > 1; --left)
        page[bytes_.below(256)] = static_cast<char>(bytes_.take<std::uint8_t>());
    files.metadata = make_file(page, KMES_METADATA_BYTES, kMetadataSeals);
    files.data = make_file("", kCapacityBytes, kDataSeals);
    return files;
}

void HostileServer::change_file() {
    const Files& files = cpus_[bytes_.below(kMaxCpus) % cpus_.size()];
    const std::uint64_t how = bytes_.below(12);

    PassedFiles::change(how & 1 ? files.metadata : files.data, how / 2);
}

void HostileServer::end_something() {
    if (bytes_.below(4) == 3) {
        if (listening_ >= 0) close(std::exchange(listening_, -1));
        return;
    }
    if (connections_.empty()) return;
    close(connections_.back());
    connections_.pop_back();
}

// -- Requests of libkmes --

void HostileServer::begin_call(std::string_view type, std::string_view payload) {
    text_ = std::string(type) + std::string(payload);
    type_bytes_ = type.size();
    requests_ = 0;
}

int HostileServer::accept_client() {
    const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

    // A request that was too long for a packet is sent again.
    expect(fd >= 0 || is_unsent_, "a request of libkmes has a connection of its own");
    if (fd < 0) return connections_.back();
    expect(++requests_ <= kMaxRequests, "a call of libkmes ends");
    connections_.push_back(fd);
    return fd;
}

ssize_t HostileServer::on_send(int fd, const struct msghdr* message, int flags) {
    const std::uint8_t shape = bytes_.take<std::uint8_t>();
    const int client = accept_client();

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kLimit, sizeof(kLimit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kLimit, sizeof(kLimit));
    if (shape == 0xFF) shutdown(client, SHUT_RD);
    const ssize_t sent = really_send(fd, message, flags);

    is_unsent_ = sent < 0;
    if (sent < 0) return sent;
    check_request(client);
    // By default: one correct answer, and the connection stays open.
    if (shape < 0xF0) {
        for (std::uint64_t left = shape < 0xC0 ? 1 : shape % 4; left > 0; --left) answer(client);
    }
    if (shape % 16 == 14) shutdown(client, SHUT_WR);
    if (shape % 16 == 15) {
        close(client);
        connections_.pop_back();
    }
    return sent;
}

void HostileServer::check_request(int fd) {
    alignas(struct cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))];
    std::string bytes(sizeof(request_) + KMES_SOCKET_INLINE_MAX_BYTES + 1, '\0');
    struct iovec piece = {bytes.data(), bytes.size()};
    struct msghdr message = {};
    int file = -1;

    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof(room);
    const ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    expect(got >= static_cast<ssize_t>(sizeof(request_)), "a request is whole");
    expect(!(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)), "a request is not too long");
    if (const struct cmsghdr* part = CMSG_FIRSTHDR(&message)) {
        expect_equal(part->cmsg_len, CMSG_LEN(sizeof(int)), "a request has one descriptor or none");
        std::memcpy(&file, CMSG_DATA(part), sizeof(int));
    }
    std::memcpy(&request_, bytes.data(), sizeof(request_));
    bytes.resize(static_cast<std::size_t>(got));
    expect_equal(request_.magic, KMES_SOCKET_MAGIC, "the magic of a request");
    sent_cpus_ = 0;
    if (request_.operation == KMES_SOCKET_EMIT) {
        check_emit(request_, std::string_view(bytes).substr(sizeof(request_)), file);
    } else if (request_.operation == KMES_SOCKET_EMIT_BATCH) {
        check_batch(request_, file);
    } else {
        expect(request_.body_bytes == 0 && request_.type_len == 0 && request_.count == 0 &&
                   file < 0 && bytes.size() == sizeof(request_),
               "a request without a body has none");
    }
    if (file >= 0) close(file);
}

void HostileServer::check_emit(const kmes_socket_request& request, std::string_view body,
                               int file) {
    std::string text(request.body_bytes, '\0');

    if (file >= 0)
        expect_equal(pread(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()),
                     "the bytes of a body in a file");
    else
        text = body;
    expect(text == text_, "the body of an emit is type and payload");
    expect_equal(std::size_t{request.type_len}, type_bytes_, "type_len of an emit");
}

// All entries are the same event.
void HostileServer::check_batch(const kmes_socket_request& request, int file) {
    std::string text(text_.size(), '\0');
    kmes_emit_entry entry = {};

    expect(file >= 0, "a batch comes in a file");
    for (std::uint32_t i = 0; i < request.count; ++i) {
        const auto at = static_cast<off_t>(request.body_bytes + i * sizeof(entry));

        expect_equal(pread(file, &entry, sizeof(entry), at), static_cast<ssize_t>(sizeof(entry)),
                     "the bytes of an entry");
        expect_equal(std::size_t{entry.type_len} + entry.payload_len, text_.size(),
                     "the length of an event in a batch");
        expect_equal(pread(file, text.data(), entry.type_len,
                           static_cast<off_t>(reinterpret_cast<std::uint64_t>(entry.type))),
                     static_cast<ssize_t>(entry.type_len), "the bytes of a type");
        expect_equal(pread(file, text.data() + entry.type_len, entry.payload_len,
                           static_cast<off_t>(reinterpret_cast<std::uint64_t>(entry.payload))),
                     static_cast<ssize_t>(entry.payload_len), "the bytes of a payload");
        expect(text == text_, "the bytes of an event in a batch");
    }
}

// -- Answers --

HostileServer::Answer HostileServer::right_answer() {
    struct stat status = {};
    Answer answer;
    kmes_socket_reply& reply = answer.reply;
    const bool is_all = request_.cpu == KMES_SOCKET_ALL_CPUS;
    const std::size_t first = is_all ? sent_cpus_ : request_.cpu % cpus_.size();

    reply.magic = KMES_SOCKET_MAGIC;
    reply.cpus = static_cast<__u32>(cpus_.size());
    reply.session = 1;
    switch (request_.operation) {
        case KMES_SOCKET_IDENTIFY:
            fstat(cpus_[first % cpus_.size()].metadata, &status);
            reply.device = status.st_dev;
            reply.inode = status.st_ino;
            break;
        case KMES_SOCKET_ATTACH:
        case KMES_SOCKET_LEASE:
            reply.first = is_all ? sent_cpus_ : request_.cpu;
            reply.count = is_all ? reply.cpus - std::min(sent_cpus_, reply.cpus) : 1;
            reply.capacity = kCapacityBytes;
            reply.emitted = request_.operation == KMES_SOCKET_LEASE;
            for (std::size_t i = 0; i < reply.count; ++i) {
                answer.fds.push_back(cpus_[first + i].metadata);
                answer.fds.push_back(cpus_[first + i].data);
            }
            break;
        case KMES_SOCKET_EMIT_BATCH:
            reply.emitted = request_.count;
            break;
        case KMES_SOCKET_EMITTERS:
            reply.count = static_cast<__u32>(1 + bytes_.below(4));
            answer.body.assign(reply.count * sizeof(kmes_socket_emitter), 'e');
            break;
        default:
            break;
    }
    return answer;
}

void HostileServer::change_answer(Answer* answer) {
    std::uint32_t fields[sizeof(answer->reply) / sizeof(std::uint32_t)];
    const auto kinds = static_cast<std::uint64_t>(PassedFiles::Kind::kCount);

    switch (bytes_.below(8)) {
        case 0:
            answer->reply.error = -static_cast<__s32>(bytes_.below(140));
            answer->reply.emitted = static_cast<__u32>(bytes_.below(4));
            break;
        case 1:
            answer->reply.error = bytes_.take<__s32>();
            break;
        case 2:
            answer->reply.capacity = kCapacities[bytes_.below(std::size(kCapacities))];
            return;
        case 3:  // fewer CPUs in the packet, or more
            answer->reply.count = static_cast<__u32>(bytes_.below(4));
            answer->fds.resize(2 * answer->reply.count, cpus_[0].metadata);
            return;
        case 4:
            answer->fds.push_back(files_.make(static_cast<PassedFiles::Kind>(bytes_.below(kinds))));
            return;
        case 5:  // any number
            answer->reply.cpus = bytes_.take<__u32>();
            answer->reply.count = static_cast<__u32>(bytes_.below(128));
            answer->fds.assign(std::min<std::size_t>(2 * answer->reply.count, kMaxDescriptors),
                               cpus_[0].data);
            for (std::size_t i = 0; i < answer->fds.size(); i += 2)
                answer->fds[i] = cpus_[0].metadata;
            return;
        case 6:
            if (!answer->fds.empty()) answer->fds.pop_back();
            return;
        default:
            std::memcpy(fields, &answer->reply, sizeof(fields));
            fields[bytes_.below(std::size(fields))] = bytes_.take<std::uint32_t>();
            std::memcpy(&answer->reply, fields, sizeof(fields));
            return;
    }
    if (answer->reply.error && bytes_.below(4)) answer->fds.clear();
    if (answer->reply.error && answer->fds.empty()) answer->reply.count = 0;
}

void HostileServer::answer(int fd) {
    const std::uint8_t shape = bytes_.take<std::uint8_t>();
    Answer answer = right_answer();
    std::size_t bytes = sizeof(answer.reply) + answer.body.size();

    if (shape >= 0x80) change_answer(&answer);
    if (shape >= 0xC0) change_answer(&answer);
    if (shape % 32 == 31) bytes = bytes_.below(bytes + 9);
    sent_cpus_ += answer.reply.count;
    send(fd, answer, bytes);
}

void HostileServer::send(int fd, const Answer& answer, std::size_t bytes) {
    alignas(struct cmsghdr) char room[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
    std::string packet(reinterpret_cast<const char*>(&answer.reply), sizeof(answer.reply));
    packet += answer.body;
    packet.resize(packet.size() + 8);  // zeros extend a packet that must be too long
    struct iovec piece = {packet.data(), bytes};
    struct msghdr message = {};

    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!answer.fds.empty()) {
        message.msg_control = room;
        message.msg_controllen = CMSG_SPACE(answer.fds.size() * sizeof(int));
        struct cmsghdr* part = CMSG_FIRSTHDR(&message);

        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(answer.fds.size() * sizeof(int));
        std::memcpy(CMSG_DATA(part), answer.fds.data(), answer.fds.size() * sizeof(int));
    }
    really_send(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace kmes::fuzz

// Replaces the sendmsg of libc, and of the sanitizers.
extern "C" ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
    kmes::fuzz::HostileServer* server = kmes::fuzz::serving;

    return server ? server->on_send(fd, message, flags)
                  : kmes::fuzz::really_send(fd, message, flags);
}
