// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A set of readers of all CPUs and its producer, for the tests of the set.
#ifndef KMES_USER_READER_SET_TESTING_H_
#define KMES_USER_READER_SET_TESTING_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kmes/user/libkmes_reader.h"
#include "kmes/user/producer.h"
#include "kmes/user/reader_set.h"
#include "kmes/user/test_support.h"

namespace kmes {

inline constexpr uint64_t k64KiB = 64 << 10;

// Attach functions that fail for one CPU a given number of times.
struct Refusing {
    kmes_attach_functions real = {};
    std::atomic<int> refusals{0};
    unsigned first = 0;  // CPUs below it never fail

    static int attach(void* context, __u16 cpu, kmes_mapping* mapping) {
        auto* self = static_cast<Refusing*>(context);

        if (cpu >= self->first && self->refusals.fetch_sub(1) > 0) return -EMFILE;
        return self->real.attach(self->real.context, cpu, mapping);
    }
    static int identify(void* context, __u16 cpu, kmes_mapping* mapping) {
        auto* self = static_cast<Refusing*>(context);

        return self->real.identify(self->real.context, cpu, mapping);
    }
    static void detach(void* context, kmes_mapping* mapping) {
        auto* self = static_cast<Refusing*>(context);

        self->real.detach(self->real.context, mapping);
    }
    static void configure(void* context, kmes_reader_config* config, __u16 cpu) {
        kmes_reader_by_libkmes(config, cpu);
        static_cast<Refusing*>(context)->real = config->attach_functions;
        config->attach_functions = {attach, identify, detach, context};
        config->is_current = nullptr;
    }
    static int cpus(void*) { return kmes_cpus_by_libkmes(); }

    kmes_reader_set_options options() {
        kmes_reader_set_options result = {};

        result.configure = configure;
        result.cpus = cpus;
        result.context = this;
        return result;
    }
};

class ReaderSetTest : public testing::Test {
  protected:
    void SetUp() override { setenv("KMES_SOCKET", address_.c_str(), 1); }
    void TearDown() override {
        kmes_reader_set_close(set_);
        unsetenv("KMES_SOCKET");
    }

    void start(unsigned cpus) {
        producer_.reset();
        producer_ = std::make_unique<Producer>(test_options(cpus));
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }

    void emit(unsigned cpu, int count = 1) {
        for (int i = 0; i < count; i++) ASSERT_EQ(0, producer_->emit(cpu, "t"));
    }

    // True if the set asks every CPU for a wake, as it does before it sleeps.
    bool is_set_asleep() const { return asking_cpus(*producer_) == kmes_reader_set_cpus(set_); }

    // Checks that each CPU's events come in their order, and counts them.
    static int on_event(void* context, const kmes_event_view* view) {
        auto* self = static_cast<ReaderSetTest*>(context);

        EXPECT_EQ(self->last_[view->cpu_id] + 1, view->sequence);
        self->last_[view->cpu_id] = view->sequence;
        self->total_++;
        return self->then_ ? self->then_(*view) : 0;
    }
    int consume(unsigned most = 0) { return kmes_reader_set_consume(set_, most, on_event, this); }
    int poll(uint64_t timeout_ns) { return kmes_reader_set_poll(set_, timeout_ns, on_event, this); }
    // Consumes until the set reads the buffer of that generation. On a busy machine the producer
    // may not answer an attach at once, and the set goes on meanwhile.
    bool switches_to(uint64_t generation, unsigned cpu) {
        return comes_true([&] {
            consume();
            return kmes_reader_set_generation(set_, cpu) == generation;
        });
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
    Refusing refusing_;
    kmes_reader_set* set_ = nullptr;
    std::map<unsigned, uint64_t> last_;
    int total_ = 0;
    std::function<int(const kmes_event_view&)> then_;
};

}  // namespace kmes

#endif  // KMES_USER_READER_SET_TESTING_H_
