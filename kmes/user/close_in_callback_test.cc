// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A function that a set or a merge calls for an event closes it. The call then uses nothing of it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <memory>
#include <string>

#include "kmes/user/merge.h"
#include "kmes/user/reader_set.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

constexpr uint64_t kLongNs = 3600'000'000'000;

class CloseInCallbackTest : public testing::Test {
  protected:
    void SetUp() override {
        setenv("KMES_SOCKET", address_.c_str(), 1);
        producer_ = std::make_unique<Producer>(test_options(2));
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
        for (unsigned i = 0; i < 100; i++) ASSERT_EQ(0, producer_->emit(i % 2, "t"));
        ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    }
    void TearDown() override {
        kmes_merge_close(merge_);
        kmes_reader_set_close(set_);
        unsetenv("KMES_SOCKET");
    }

    int note_call() {
        calls_++;
        return result_;
    }
    static int close_set(void* context, const kmes_event_view*) {
        auto* self = static_cast<CloseInCallbackTest*>(context);

        kmes_reader_set_close(self->set_);
        self->set_ = nullptr;
        return self->note_call();
    }
    static int close_merge(void* context, const kmes_event_view*, bool) {
        auto* self = static_cast<CloseInCallbackTest*>(context);

        kmes_merge_close(self->merge_);
        self->merge_ = nullptr;
        return self->note_call();
    }
    static int close_both(void* context, const kmes_event_view* view, bool is_late) {
        close_merge(context, view, is_late);
        close_set(context, view);
        return static_cast<CloseInCallbackTest*>(context)->result_;
    }
    static int close_set_of_merge(void* context, const kmes_event_view* view, bool) {
        return close_set(context, view);
    }
    int poll_merge(kmes_merge_function function) {
        EXPECT_EQ(0, kmes_merge_open(&merge_, set_, nullptr));
        kmes_merge_flush(merge_);
        return kmes_merge_poll(merge_, kLongNs, function, this);
    }

    TemporaryFolder folder_;
    const std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
    kmes_reader_set* set_ = nullptr;
    kmes_merge* merge_ = nullptr;
    int result_ = 0;
    int calls_ = 0;
};

TEST_F(CloseInCallbackTest, Consume) {
    EXPECT_EQ(-EBADF, kmes_reader_set_consume(set_, 0, close_set, this));
    EXPECT_EQ(1, calls_);
}

TEST_F(CloseInCallbackTest, ConsumeWithADescriptor) {
    ASSERT_LE(0, kmes_reader_set_fd(set_));
    EXPECT_EQ(-EBADF, kmes_reader_set_consume(set_, 0, close_set, this));
    EXPECT_EQ(1, calls_);
}

TEST_F(CloseInCallbackTest, ResultOfTheFunctionStays) {
    result_ = -ECANCELED;
    EXPECT_EQ(-ECANCELED, kmes_reader_set_consume(set_, 0, close_set, this));
}

TEST_F(CloseInCallbackTest, PositiveResultIsNoCount) {
    result_ = 1;
    EXPECT_EQ(-EBADF, kmes_reader_set_consume(set_, 0, close_set, this));
}

TEST_F(CloseInCallbackTest, Poll) {
    EXPECT_EQ(-EBADF, kmes_reader_set_poll(set_, kLongNs, close_set, this));
    EXPECT_EQ(1, calls_);
}

TEST_F(CloseInCallbackTest, Merge) {
    EXPECT_EQ(-EBADF, poll_merge(close_merge));
    EXPECT_EQ(1, calls_);
}

TEST_F(CloseInCallbackTest, MergeAndItsSet) {
    EXPECT_EQ(-EBADF, poll_merge(close_both));
    EXPECT_EQ(2, calls_);
}

// Against the order of the calls, and harmless.
TEST_F(CloseInCallbackTest, SetBeforeItsMerge) {
    kmes_event_view view;

    EXPECT_EQ(-EBADF, poll_merge(close_set_of_merge));
    EXPECT_EQ(1, calls_);
    EXPECT_EQ(-EBADF, kmes_merge_next(merge_, &view, nullptr));
    EXPECT_EQ(-EBADF, kmes_merge_wait(merge_, kLongNs));
}

}  // namespace
}  // namespace kmes
