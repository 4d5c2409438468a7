// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// For tests of the address of a producer's socket: producers that serve it, and the errors that a
// producer and its clients get.
#ifndef KMES_USER_SERVE_FIXTURE_H_
#define KMES_USER_SERVE_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <system_error>

#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {

inline int serve_error(Producer& producer, const std::string& address, unsigned mode = 0600,
                       Serves serves = Serves::kAttachAndEmit) {
    try {
        producer.serve(address, mode, serves);
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    return 0;
}

inline std::unique_ptr<Producer> started() {
    auto producer = std::make_unique<Producer>(test_options());

    EXPECT_EQ(0, producer->start_without_registry());
    return producer;
}

inline int attach_error(const std::string& address) {
    RawClient client(address);

    EXPECT_TRUE(client.ask(KMES_SOCKET_ATTACH, 0));
    return client.reply();
}

inline bool exists(const std::string& path) {
    struct stat status = {};

    return lstat(path.c_str(), &status) == 0;
}

inline int emit_error(const std::string& address) {
    RawClient client(address);
    struct {
        struct kmes_socket_request request;
        char body[2];
    } event = {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 2, 1, 0}, {'t', 'p'}};

    EXPECT_TRUE(client.send_bytes(&event, sizeof(event.request) + 2));
    return client.reply();
}

class ServeTest : public testing::Test {
  protected:
    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
};

}  // namespace kmes

#endif  // KMES_USER_SERVE_FIXTURE_H_
