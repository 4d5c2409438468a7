// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Where a set begins to read: at a place of an earlier set, or at the attach. The losses before the
// first read are counted from there.
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>

#include <vector>

#include "kmes/user/reader_set_testing.h"

namespace kmes {
namespace {

TEST_F(ReaderSetTest, GoesOnWhereAnEarlierSetHasLeftOff) {
    start(2);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    emit(0, 10);
    emit(1, 10);
    EXPECT_EQ(15, consume(15));
    std::vector<kmes_reader_place> places;

    for (unsigned cpu = 0; cpu < 3; cpu++) places.push_back(kmes_reader_set_get_place(set_, cpu));
    EXPECT_FALSE(places[2].is_known);
    kmes_reader_set_close(set_);
    emit(1);
    kmes_reader_set_options options = {};

    options.place = places.data();
    options.places = 2;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    EXPECT_EQ(6, consume());
    EXPECT_EQ(10u, last_[0]);
    EXPECT_EQ(11u, last_[1]);
}

// The losses that a set counts for a ring that is overwritten several times before the first read.
class FirstLossTest : public ReaderSetTest {
  protected:
    void start_small(const ResumeState& resume = {}) {
        ProducerOptions options = test_options(1);

        options.capacity_bytes = k64KiB;
        options.resume = resume;
        producer_ = std::make_unique<Producer>(options);
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }
    void open(const kmes_reader_place* place = nullptr) {
        kmes_reader_set_options options = {};

        options.place = place;
        options.places = place ? 1 : 0;
        ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    }
    uint64_t place() const { return kmes_reader_set_get_place(set_, 0).last_sequence; }
    void expect_counted(uint64_t last, uint64_t count) {
        const uint64_t before = place();
        kmes_event_view view;
        uint64_t delivered = 0;

        emit(0, static_cast<int>(count));
        while (kmes_reader_set_next(set_, &view) == KMES_READ_EVENT) delivered++;
        const uint64_t lost = kmes_reader_set_statistics(set_, 0).lost;

        EXPECT_LT(0u, lost);
        EXPECT_EQ(last + count, place());
        EXPECT_EQ(last + count - before, delivered + lost);
    }
};

TEST_F(FirstLossTest, IsCountedSinceTheAttachToAnEmptyRing) {
    start_small();
    open();
    expect_counted(0, 20000);
}

TEST_F(FirstLossTest, IsCountedSinceTheAttachToARingWithEvents) {
    start_small();
    emit(0, 20000);
    open();
    const uint64_t gone = place();

    EXPECT_LT(0u, gone) << "before the attach";
    EXPECT_GT(20000u, gone);
    expect_counted(20000, 20000);
}

TEST_F(FirstLossTest, IsCountedSinceAPlaceFromBeforeTheFirstEvent) {
    start_small();
    open();
    const kmes_reader_place kept = kmes_reader_set_get_place(set_, 0);

    EXPECT_TRUE(kept.is_known);
    kmes_reader_set_close(set_);
    emit(0, 20000);
    open(&kept);
    EXPECT_EQ(KMES_RESUMED_GOES_ON, kmes_reader_set_resumed(set_, 0));
    kmes_event_view view;

    ASSERT_EQ(KMES_READ_EVENT, kmes_reader_set_next(set_, &view));
    EXPECT_LT(1u, view.sequence);
    EXPECT_EQ(view.sequence - 1, view.lost_before);
}

// The empty ring looks like that of a new session. Its next event has not the number 1.
TEST_F(FirstLossTest, IsCountedSinceTheAttachToAResumedProducer) {
    start_small();
    emit(0, 500);
    const ResumeState state = producer_->retire();

    start_small(state);
    open();
    EXPECT_EQ(500u, place());
    expect_counted(500, 20000);
}

TEST_F(FirstLossTest, IsCountedSinceTheAttachToARingThatAShrinkHasEmptied) {
    ProducerOptions options = test_options(1);

    options.capacity_bytes = 1 << 20;
    options.max_event_bytes = 1 << 20;
    producer_ = std::make_unique<Producer>(options);
    ASSERT_EQ(0, producer_->start_without_registry());
    producer_->serve(address_);
    emit(0, 6);
    ASSERT_EQ(0, producer_->emit(0, "t", std::vector<std::byte>(100000)));
    ASSERT_EQ(0, producer_->resize(k64KiB));
    open();
    EXPECT_EQ(7u, place());
    expect_counted(7, 20000);
}

// A kernel's rings, which have no session. One attach gets a ring that cannot be read.
struct Kernel {
    kmes_attach_functions real = {};
    int until_unreadable = 0;  // the attaches up to that one, which is the last of them; 0: none

    static int attach(void* context, __u16 cpu, kmes_mapping* mapping) {
        auto* self = static_cast<Kernel*>(context);
        const int error = self->real.attach(self->real.context, cpu, mapping);

        mapping->session = 0;
        if (error || self->until_unreadable == 0 || --self->until_unreadable > 0) return error;
        void* copy = mmap(nullptr, mapping->mapped_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        memcpy(copy, mapping->base, KMES_METADATA_BYTES);
        memset(static_cast<uint8_t*>(copy) + KMES_METADATA_BYTES, 0xff,
               mapping->mapped_bytes - KMES_METADATA_BYTES);
        munmap(mapping->base, mapping->mapped_bytes);
        mapping->base = copy;
        return 0;
    }
    static int identify(void* context, __u16 cpu, kmes_mapping* mapping) {
        auto* self = static_cast<Kernel*>(context);
        const int error = self->real.identify(self->real.context, cpu, mapping);

        mapping->session = 0;
        return error;
    }
    static void configure(void* context, kmes_reader_config* config, __u16 cpu) {
        auto* self = static_cast<Kernel*>(context);

        kmes_reader_by_libkmes(config, cpu);
        self->real = config->attach_functions;
        config->attach_functions.attach = attach;
        config->attach_functions.identify = identify;
        config->attach_functions.context = self;
        config->is_current = nullptr;
        config->stop_on_corrupt = true;
    }
};

// The set compares the place with the ring's last event. A ring that cannot be read decides
// nothing: its events must not be delivered twice once it can.
TEST_F(ReaderSetTest, RingThatCannotBeReadIsComparedLater) {
    Kernel kernel;
    kmes_reader_set_options options = {};

    start(1);
    emit(0, 10);
    options.configure = Kernel::configure;
    options.cpus = Refusing::cpus;
    options.context = &kernel;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    EXPECT_EQ(10, consume());
    const kmes_reader_place place = kmes_reader_set_get_place(set_, 0);

    ASSERT_TRUE(place.is_known);
    kmes_reader_set_close(set_);
    set_ = nullptr;
    options.place = &place;
    options.places = 1;
    kernel.until_unreadable = 2;  // the first attach is for reading, the second compares
    const int error = kmes_reader_set_open(&set_, &options);

    EXPECT_GT(0, error) << "no CPU can be read";
    ASSERT_EQ(nullptr, set_);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    EXPECT_EQ(KMES_RESUMED_GOES_ON, kmes_reader_set_resumed(set_, 0));
    emit(0);
    EXPECT_EQ(1, consume());
    EXPECT_EQ(11u, last_[0]);
}

}  // namespace
}  // namespace kmes
