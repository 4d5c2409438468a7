/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tables of expected bytes, written by hand from the specification: concatenated pieces, and pages
 * that are zero except for the given rows. Nothing here computes a byte.
 */
#ifndef KMES_TESTS_BYTES_H
#define KMES_TESTS_BYTES_H

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace kmes::tests {

using Bytes = std::vector<std::uint8_t>;

/* Concatenates the pieces. */
inline Bytes joined(std::initializer_list<Bytes> pieces) {
    Bytes all;
    for (const Bytes& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
    return all;
}

/* `count` times the same byte. */
inline Bytes filled(std::size_t count, std::uint8_t byte) {
    return Bytes(count, byte);
}

/* A row of a page: its offset, and its bytes. */
struct Row {
    std::size_t offset;
    Bytes bytes;
};

/* A metadata page: zeros except for the rows. */
inline Bytes page_of(std::initializer_list<Row> rows) {
    Bytes page(4096, 0);
    for (const Row& row : rows)
        for (std::size_t i = 0; i < row.bytes.size(); i++) page[row.offset + i] = row.bytes[i];
    return page;
}

}  // namespace kmes::tests

#endif
