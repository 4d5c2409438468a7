// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reader's use of its attach functions: the attached CPU, the detached mappings, and the
 * identity of two mappings (E14, E15, E19, E25). Also that it opens in memory with any old content.
 */
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <utility>

#include "kmes/tests/test_reader.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

constexpr std::uint16_t kCpu = 11;

/* Attach functions that check the reader: it detaches only what was attached, once, and
 * unchanged. */
class Attach : public testing::Test {
  protected:
    Attach() {
        config = world.reader_config();
        config.attach_functions = {attach, identify, detach, this};
        memset(&reader, 0xA5, sizeof(reader));
        memset(&view, 0, sizeof(view));
    }
    ~Attach() override {
        if (is_open) kmes_reader_close(&reader);
        EXPECT_TRUE(attached.empty()) << "what was attached is detached";
    }

    int open() {
        const int error = kmes_reader_open(&reader, &config);
        is_open = error == 0;
        return error;
    }
    int next() { return kmes_reader_next(&reader, room, sizeof(room), &view); }

    /* Sets the fields that a kernel would set. The others keep the reader's values. */
    static int attach(void* context, __u16 cpu_id, kmes_mapping* mapping) {
        auto* self = static_cast<Attach*>(context);
        EXPECT_EQ(cpu_id, kCpu);
        self->attaches++;
        if (self->attaches == self->failing_attach) return -EMFILE;
        if (std::exchange(self->is_first_attempt, false)) {
            const kmes_mapping none{};
            EXPECT_EQ(memcmp(mapping, &none, sizeof(none)), 0) << "it is handed nothing at all";
        }
        kmes_mapping found;
        self->world.describe_current(&found);
        mapping->base = found.base;
        mapping->mapped_bytes = found.mapped_bytes;
        mapping->device = self->device;
        mapping->inode = 7;
        mapping->owner = &self->owners[self->attaches % 128];
        EXPECT_TRUE(self->attached.insert(mapping->owner).second);
        return 0;
    }
    static int identify(void* context, __u16 cpu_id, kmes_mapping* mapping) {
        auto* self = static_cast<Attach*>(context);
        EXPECT_EQ(cpu_id, kCpu);
        if (self->identify_error) return self->identify_error;
        *mapping = {};
        mapping->device = self->device;
        mapping->inode = self->is_foreign ? 8 : 7;
        return 0;
    }
    static void detach(void* context, kmes_mapping* mapping) {
        auto* self = static_cast<Attach*>(context);
        EXPECT_NE(mapping->base, nullptr);
        EXPECT_EQ(self->attached.erase(mapping->owner), 1u) << "it is attached, and only once";
    }

    World world{{.cpu_id = kCpu}};
    kmes_reader_config config;
    kmes_reader reader;
    kmes_event_view view;
    std::uint8_t room[4096];
    std::set<void*> attached;
    char owners[128];
    std::uint64_t device = 1;
    bool is_open = false;
    bool is_first_attempt = true;  // of an open or a switch
    bool is_foreign = false;
    int identify_error = 0;
    int attaches = 0;
    int failing_attach = 0;
};

TEST_F(Attach, OpensInMemoryThatHeldAnything) {
    ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(open(), 0);
    EXPECT_EQ(reader.mapping.session, 0u);
    EXPECT_FALSE(kmes_reader_release(&reader)) << "nothing is shown yet";
    ASSERT_EQ(next(), KMES_READ_EVENT);
    EXPECT_EQ(view.lost_before, 0u);
    kmes_reader_statistics one{};
    one.delivered = 1;
    EXPECT_EQ(memcmp(&reader.statistics, &one, sizeof(one)), 0);
}

// E19: device, inode and session identify a buffer; another buffer can have the same inode.
TEST_F(Attach, TellsBuffersApartByTheDevice) {
    ASSERT_EQ(open(), 0);
    device = 2;
    is_first_attempt = true;
    ASSERT_EQ(world.swap(512_b), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(next(), KMES_READ_EVENT);
    EXPECT_EQ(reader.statistics.switches, 1u);
    EXPECT_EQ(attached.size(), 1u) << "the old one is detached, the new one is not";
}

// E15: a nudge without a successor. A buffer that cannot be identified is detached once, and
// attached again.
TEST_F(Attach, DetachesOnceWhatItCannotIdentify) {
    ASSERT_EQ(open(), 0);
    ASSERT_EQ(kmes_cpu_retire(&world.cpu), 0);
    identify_error = -EMFILE;
    EXPECT_EQ(next(), -EMFILE);
    EXPECT_EQ(attached.size(), 1u);
    const int before = attaches;
    EXPECT_EQ(next(), -EMFILE);
    EXPECT_GT(attaches, before) << "the change is not taken for seen";
    identify_error = 0;
    EXPECT_EQ(next(), KMES_READ_EMPTY);
}

// A failed attempt never counts as a success, not even the last one.
TEST_F(Attach, SaysWhyTheAttemptFailedThatEndedIt) {
    is_foreign = true;
    for (failing_attach = 1; failing_attach < 100; failing_attach++) {
        attaches = 0;
        const int error = open();
        if (error)
            EXPECT_EQ(error, -EMFILE) << failing_attach;
        else
            EXPECT_LT(attaches, failing_attach);
        if (is_open) kmes_reader_close(&reader);
        is_open = false;
        EXPECT_TRUE(attached.empty()) << failing_attach;
    }
}

}  // namespace
}  // namespace kmes::tests
