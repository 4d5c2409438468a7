// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Concurrent calls of a producer. A call that fails inside an emission changes nothing and does not
// wait. A resize makes certain other calls wait.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

constexpr uint64_t k64KiB = 64 << 10;

template <typename Call>
int thrown(Call call) {
    try {
        call();
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    return 0;
}

int attach_error(const std::string& address) {
    RawClient client(address);

    EXPECT_TRUE(client.ask(KMES_SOCKET_ATTACH, 0));
    return client.reply();
}

// Makes every call that can fail, inside a reservation of this thread.
void expect_refusals(Producer* producer, const std::string& other_address) {
    Attachment attachment;

    EXPECT_EQ(-EBUSY, producer->resize(2 * k64KiB));
    EXPECT_EQ(-EBUSY, producer->resize(1));
    EXPECT_EQ(-EBUSY, producer->registry_available(k64KiB));
    EXPECT_EQ(-EBUSY, producer->start_without_registry());
    EXPECT_EQ(-EBUSY, producer->set_max_event_bytes(2048));
    EXPECT_EQ(-EBUSY, producer->set_max_event_bytes(1));
    EXPECT_EQ(-EBUSY, producer->attach(&attachment));
    EXPECT_EQ(-EBUSY, producer->attach(0, &attachment));
    EXPECT_EQ(EBUSY, thrown([&] { producer->retire(); }));
    EXPECT_EQ(EBUSY, thrown([&] { producer->stop_serving(); }));
    EXPECT_EQ(EBUSY, thrown([&] { producer->serve(other_address, 0600, Serves::kEmit); }));
    EXPECT_EQ(0u, producer->nudge());
    EXPECT_EQ(0u, producer->nudge_due());
    EXPECT_EQ(1u, producer->retired_buffers());
    EXPECT_TRUE(attachment.buffers.empty());
}

class ProducerCallsTest : public testing::Test {
  protected:
    void start(unsigned cpus) {
        producer_ = std::make_unique<Producer>(test_options(cpus));
        ASSERT_EQ(0, producer_->start_without_registry());
        ASSERT_EQ(0, producer_->resize(k64KiB));  // one retired buffer a CPU
        producer_->serve(address_, 0600, Serves::kAttachAndEmit);
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
};

TEST_F(ProducerCallsTest, RefusalsInsideAReservationChangeNothing) {
    start(1);
    Reservation reservation;
    Attachment before, after;

    ASSERT_EQ(0, producer_->attach(&before));
    ASSERT_EQ(0, producer_->reserve(0, "t", 1, &reservation));
    expect_refusals(producer_.get(), folder_.path("other"));
    EXPECT_EQ(0, attach_error(address_));  // it still serves
    reservation.commit();
    ASSERT_EQ(0, producer_->attach(&after));
    EXPECT_EQ(before.buffers, after.buffers);
    EXPECT_EQ(1u, producer_->statistics().events);
    EXPECT_EQ(1u, InProcessReader(*producer_, 0).drain().size());
    EXPECT_EQ(0, producer_->emit(0, "t"));
    EXPECT_EQ(0, producer_->resize(2 * k64KiB));
    EXPECT_EQ(0, thrown([&] { producer_->retire(); }));
}

// Meanwhile threads that wait for the CPU of the reservation hold the locks of the other calls.
TEST_F(ProducerCallsTest, RefusalsInsideAReservationWaitForNobody) {
    start(1);
    Reservation reservation;
    RawClient client(address_);
    std::atomic<bool> resizes{false};
    struct {
        struct kmes_socket_request request;
        char body[2];
    } event = {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 2, 1, 0}, {'t', 'p'}};

    ASSERT_EQ(0, producer_->reserve(0, "t", 1, &reservation));
    std::thread resizer([&] {
        resizes = true;
        EXPECT_EQ(0, producer_->resize(2 * k64KiB));
    });

    ASSERT_TRUE(comes_true([&] { return resizes.load(); }));
    ASSERT_TRUE(client.send_bytes(&event, sizeof(event.request) + 2));
    usleep(50000);  // both should wait for the lock of the CPU; if not, the test shows less
    expect_refusals(producer_.get(), folder_.path("other"));
    reservation.commit();
    resizer.join();
    EXPECT_EQ(0, client.reply());
    EXPECT_EQ(0, attach_error(address_));
    EXPECT_EQ(2u, producer_->statistics().events);
}

// An emit of a client waits for the CPU of an open reservation; no other client does.
TEST_F(ProducerCallsTest, OpenReservationHoldsUpNoOtherClient) {
    start(2);
    Reservation reservation;
    std::vector<std::unique_ptr<RawClient>> emitters;
    RawClient other(address_);
    struct {
        struct kmes_socket_request request;
        char body[2];
    } event = {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 2, 1, 0}, {'t', 'p'}};

    ASSERT_EQ(0, producer_->reserve(0, "t", 1, &reservation));
    for (int i = 0; i < 3; i++) {
        emitters.push_back(std::make_unique<RawClient>(address_));
        ASSERT_TRUE(emitters.back()->send_bytes(&event, sizeof(event.request) + 2));
        // The second reply comes from a check of all connections after the emit had arrived.
        ASSERT_EQ(0, attach_error(address_));
        ASSERT_EQ(0, attach_error(address_));
    }
    event.request.cpu = 1;
    ASSERT_TRUE(other.send_bytes(&event, sizeof(event.request) + 2));
    EXPECT_EQ(0, other.reply());
    EXPECT_EQ(1u, producer_->statistics().events);
    reservation.commit();
    for (auto& emitter : emitters) EXPECT_EQ(0, emitter->reply());
    EXPECT_EQ(5u, producer_->statistics().events);
}

// -- Resize during an attach -------------------------------------------------------------------

TEST_F(ProducerCallsTest, AttachDoesNotWaitForAReservationWithAResize) {
    start(2);
    Reservation reservation;

    ASSERT_EQ(0, producer_->reserve(1, "t", 1, &reservation));
    std::thread resizer([&] { EXPECT_EQ(0, producer_->resize(2 * k64KiB)); });

    EXPECT_TRUE(comes_true(other_threads_sleep));  // the resize waits for the reservation
    EXPECT_EQ(0, attach_error(address_));
    Attachment before, after;

    std::thread other([&] { EXPECT_EQ(0, producer_->attach(&before)); });
    other.join();
    EXPECT_EQ(k64KiB, before.capacity_bytes);
    reservation.commit();
    resizer.join();
    EXPECT_EQ(0, producer_->attach(&after));
    EXPECT_EQ(2 * k64KiB, after.capacity_bytes);
    EXPECT_EQ(1u, InProcessReader(*producer_, 1).drain().size());
}

TEST_F(ProducerCallsTest, RetireDoesNotWaitForTheCopyOfAResize) {
    start(1);
    for (int i = 0; i < 1000; i++) ASSERT_EQ(0, producer_->emit(0, "t"));
    std::thread resizer([&] {
        for (int i = 0; i < 1000; i++) {
            const int error = producer_->resize(k64KiB << (i & 1));

            if (error == -ESHUTDOWN) return;
            EXPECT_EQ(0, error);
        }
    });

    usleep(1000);  // at any moment
    producer_->retire();
    resizer.join();
    EXPECT_EQ(-ESHUTDOWN, producer_->resize(k64KiB));
}

TEST_F(ProducerCallsTest, AttachDoesNotWaitForTheMemoryOfAResize) {
    ProducerOptions options = test_options(2);
    std::atomic<bool> is_resize{false};
    std::atomic<int> attached{-1};

    options.allocate = [&](const BufferOptions& memory) {
        // The allocation takes as long as an attach of another thread.
        if (is_resize) {
            EXPECT_TRUE(comes_true([&] { return attached != -1; }));
        }
        return BufferMemory::create(memory);
    };
    Producer producer(options);

    ASSERT_EQ(0, producer.start_without_registry());
    is_resize = true;
    std::thread resizer([&] { EXPECT_EQ(0, producer.resize(2 * k64KiB)); });
    Attachment attachment;

    attached = producer.attach(&attachment);
    EXPECT_EQ(0, attached);
    resizer.join();
    EXPECT_EQ(k64KiB, attachment.capacity_bytes);
    EXPECT_EQ(0, producer.attach(&attachment));
    EXPECT_EQ(2 * k64KiB, attachment.capacity_bytes);
}

TEST_F(ProducerCallsTest, RetireDoesNotWaitForTheMemoryOfAResize) {
    ProducerOptions options = test_options(1);
    std::atomic<bool> is_resize{false}, is_retired{false};

    options.allocate = [&](const BufferOptions& memory) {
        if (is_resize) {
            EXPECT_TRUE(comes_true([&] { return is_retired.load(); }));
        }
        return BufferMemory::create(memory);
    };
    Producer producer(options);

    ASSERT_EQ(0, producer.start_without_registry());
    is_resize = true;
    std::thread resizer([&] { EXPECT_EQ(-ESHUTDOWN, producer.resize(2 * k64KiB)); });

    producer.retire();
    is_retired = true;
    resizer.join();
}

// Calls every function of the producer that can wait, in a function of its options.
void call_inside(Producer* producer) {
    Attachment attachment;

    EXPECT_EQ(-EBUSY, producer->resize(4 * k64KiB));
    EXPECT_EQ(-EBUSY, producer->resize(1));
    EXPECT_EQ(-EBUSY, producer->registry_available(k64KiB));
    EXPECT_EQ(-EBUSY, producer->start_without_registry());
    EXPECT_EQ(0, producer->set_max_event_bytes(2048));
    EXPECT_EQ(0, producer->attach(&attachment));
    EXPECT_EQ(0, producer->emit(0, "t"));
    producer->nudge();
    producer->is_attended(0);
    producer->statistics();
    producer->stop_serving();
}

// Runs it in another thread, so that a call that waits for its own thread fails the test.
bool returns(const std::function<void()>& call) {
    auto is_over = std::make_shared<std::atomic<bool>>(false);

    std::thread([is_over, call] {
        call();
        *is_over = true;
    }).detach();
    return comes_true([&is_over] { return is_over->load(); });
}

TEST_F(ProducerCallsTest, AllocateMayCallTheProducer) {
    ProducerOptions options = test_options();
    std::atomic<bool> is_armed{false};

    options.allocate = [&](const BufferOptions& memory) {
        if (is_armed.exchange(false)) call_inside(producer_.get());
        return BufferMemory::create(memory);
    };
    producer_ = std::make_unique<Producer>(options);
    ASSERT_EQ(0, producer_->start_without_registry());
    is_armed = true;
    ASSERT_TRUE(returns([&] { EXPECT_EQ(0, producer_->resize(2 * k64KiB)); }));
    EXPECT_FALSE(is_armed);
    ASSERT_TRUE(returns([&] { EXPECT_EQ(0, producer_->resize(k64KiB)); }));
}

TEST_F(ProducerCallsTest, AllocateMayRetireTheProducer) {
    ProducerOptions options = test_options();
    std::atomic<bool> is_armed{false};

    options.nudges.in_background = true;
    options.allocate = [&](const BufferOptions& memory) {
        if (is_armed.exchange(false)) producer_->retire();
        return BufferMemory::create(memory);
    };
    producer_ = std::make_unique<Producer>(options);
    ASSERT_EQ(0, producer_->start_without_registry());
    is_armed = true;
    ASSERT_TRUE(returns([&] { EXPECT_EQ(-ESHUTDOWN, producer_->resize(2 * k64KiB)); }));
}

// A schedule clock that acts once, when it is armed.
struct ActingClock {
    std::function<void()> action;
    std::atomic<bool> is_armed{false};

    static uint64_t now_ns(void* context) {
        auto* self = static_cast<ActingClock*>(context);

        if (self->is_armed.exchange(false)) self->action();
        return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    }
};

TEST_F(ProducerCallsTest, ScheduleClockMayCallTheProducer) {
    ProducerOptions options = test_options();
    ActingClock clock;

    options.schedule_clock = {ActingClock::now_ns, &clock};
    clock.action = [&] { call_inside(producer_.get()); };
    producer_ = std::make_unique<Producer>(options);
    ASSERT_EQ(0, producer_->start_without_registry());
    clock.is_armed = true;
    ASSERT_TRUE(returns([&] { EXPECT_EQ(0, producer_->resize(2 * k64KiB)); }));
    EXPECT_FALSE(clock.is_armed);
    // Outside of a call that makes rings.
    clock.action = [&] { EXPECT_EQ(0, producer_->resize(k64KiB)); };
    clock.is_armed = true;
    ASSERT_TRUE(returns([&] { producer_->nudge_due(); }));
    EXPECT_FALSE(clock.is_armed);
}

TEST_F(ProducerCallsTest, ScheduleClockOfTheBackgroundMayCallTheProducer) {
    ProducerOptions options = test_options();
    ActingClock clock;
    std::atomic<bool> is_over{false};

    options.nudges.in_background = true;
    options.schedule_clock = {ActingClock::now_ns, &clock};
    clock.action = [&] {
        Attachment attachment;

        EXPECT_EQ(0, producer_->resize(2 * k64KiB));
        EXPECT_EQ(0, producer_->attach(&attachment));
        EXPECT_EQ(EBUSY, thrown([&] { producer_->retire(); }));
        is_over = true;
    };
    producer_ = std::make_unique<Producer>(options);
    ASSERT_EQ(0, producer_->start_without_registry());
    ASSERT_EQ(0, producer_->resize(k64KiB));  // from now on the thread reads the clock
    clock.is_armed = true;
    ASSERT_TRUE(comes_true([&] { return is_over.load(); }));
    ASSERT_TRUE(returns([&] { producer_->retire(); }));
    // The kernel may give the id of the ended thread to a new one. retire() must work there, too.
    for (int i = 0; i < 8; i++) {
        std::thread([&] { EXPECT_EQ(0, thrown([&] { producer_->retire(); })); }).join();
    }
}

TEST_F(ProducerCallsTest, ResizesAtATimeAreWholeForEveryAttach) {
    constexpr unsigned kCpus = 3;
    Producer producer(test_options(kCpus));
    std::atomic<int> resizers{2};
    std::vector<std::thread> threads;

    ASSERT_EQ(0, producer.start_without_registry());
    for (uint64_t bytes : {k64KiB, 2 * k64KiB}) {
        threads.emplace_back([&producer, &resizers, bytes] {
            for (int i = 0; i < 20; i++) EXPECT_EQ(0, producer.resize(bytes));
            resizers--;
        });
    }
    do {
        Attachment attachment;

        ASSERT_EQ(0, producer.attach(&attachment));
        for (const BufferHandle& buffer : attachment.buffers)
            EXPECT_EQ(attachment.capacity_bytes, buffer->capacity_bytes());
    } while (resizers > 0);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(kCpus * 41, producer.statistics().swaps);
}

}  // namespace
}  // namespace kmes
