// SPDX-License-Identifier: MIT
//
// A server for libkmes whose answers are chosen by a fuzzer's bytes. An answer is correct, or
// correct except for a field, or anything. It has any number of packets and any descriptors, and
// the server may end at any time. There is no thread: the sendmsg of this file replaces that of
// libc. After a request of libkmes it acts as the server, before libkmes waits for the answer.
#ifndef KMES_FUZZ_TARGETS_HOSTILE_SERVER_H_
#define KMES_FUZZ_TARGETS_HOSTILE_SERVER_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/passed_files.h"
#include "kmes/user/socket_protocol.h"

namespace kmes::fuzz {

class HostileServer {
  public:
    static constexpr std::uint64_t kCapacityBytes = 8192;

    explicit HostileServer(FuzzedBytes* bytes);
    ~HostileServer();
    HostileServer(const HostileServer&) = delete;
    HostileServer& operator=(const HostileServer&) = delete;

    // Call it before a call of libkmes. Sets the expected content of the next emit.
    void begin_call(std::string_view type, std::string_view payload);
    // Changes a file that it has passed or may pass.
    void change_file();
    // Closes an open connection, or stops to listen.
    void end_something();

    // Called by the sendmsg that libkmes calls.
    ssize_t on_send(int fd, const struct msghdr* message, int flags);

  private:
    // The buffer of one CPU.
    struct Files {
        int metadata = -1;
        int data = -1;
    };
    struct Answer {
        kmes_socket_reply reply = {};
        std::vector<int> fds;
        std::string body = {};  // follows the reply in its packet
    };

    Files make_files();
    int make_file(std::string_view text, std::uint64_t bytes, int seals);
    int accept_client();
    void check_request(int fd);
    void check_emit(const kmes_socket_request& request, std::string_view body, int file);
    void check_batch(const kmes_socket_request& request, int file);
    void answer(int fd);
    Answer right_answer();
    void change_answer(Answer* answer);
    void send(int fd, const Answer& answer, std::size_t bytes);

    FuzzedBytes& bytes_;
    PassedFiles files_;
    std::vector<Files> cpus_;
    std::vector<int> connections_;
    std::string text_;  // type and payload
    std::size_t type_bytes_ = 0;
    kmes_socket_request request_ = {};
    std::uint32_t sent_cpus_ = 0;
    int listening_ = -1;
    int requests_ = 0;  // in the current call
    bool is_unsent_ = false;
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_HOSTILE_SERVER_H_
