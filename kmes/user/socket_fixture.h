// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// For tests of libkmes: a folder with the socket that KMES_SOCKET names.
#ifndef KMES_USER_SOCKET_FIXTURE_H_
#define KMES_USER_SOCKET_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>

#include "kmes/user/producer.h"
#include "kmes/user/test_support.h"

namespace kmes {

class SocketFixture : public testing::Test {
  protected:
    void SetUp() override { setenv("KMES_SOCKET", address_.c_str(), 1); }
    void TearDown() override { unsetenv("KMES_SOCKET"); }

    std::unique_ptr<Producer> make(unsigned cpus, ResumeState resume = {}) {
        ProducerOptions options = test_options(cpus);

        options.resume = resume;
        auto producer = std::make_unique<Producer>(options);

        producer->serve(address_);
        return producer;
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
};

}  // namespace kmes

#endif  // KMES_USER_SOCKET_FIXTURE_H_
