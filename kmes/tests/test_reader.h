/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The reference reader as tests use it. Hooked build only.
 */
#ifndef KMES_TESTS_TEST_READER_H
#define KMES_TESTS_TEST_READER_H

#include <gtest/gtest.h>

#include <vector>

#include "kmes/reader.h"
#include "kmes/tests/world.h"

namespace kmes::tests {

using Sequences = std::vector<std::uint64_t>;

/* A reader with room for any event of a small world. */
struct Reader {
    explicit Reader(World& world) : config(world.reader_config()) {}
    ~Reader() { kmes_reader_close(&reader); }
    int open() { return kmes_reader_open(&reader, &config); }
    int next() { return kmes_reader_next(&reader, room, sizeof(room), &view); }

    /* Returns the sequence numbers of all events that can be read now. */
    std::vector<std::uint64_t> drain() {
        std::vector<std::uint64_t> sequences;
        while (next() == KMES_READ_EVENT) {
            EXPECT_TRUE(is_self_describing(Delivered::from(view))) << view.sequence;
            sequences.push_back(view.sequence);
        }
        return sequences;
    }

    kmes_reader_config config;
    kmes_reader reader{};
    kmes_event_view view{};
    std::uint8_t room[8192];
};

}  // namespace kmes::tests

#endif
