// SPDX-License-Identifier: MIT
//
// Hostile peers of a producer's socket (docs/producer-socket.md), step by step in one thread: the
// bytes say what is sent, by which of several connections, with which descriptors, when a peer
// stops to read, says the end or goes, when a passed file changes, when the server's loop and its
// workers do a step, and when the producer emits, resizes, or time passes.
//
// Whatever they say: each answer is the one that the documentation names for the request; an honest
// peer attaches, emits and reads its event; what is in the rings is what was emitted, and nothing
// else; no descriptor and no mapping is left at the end.
#ifndef KMES_FUZZ_TARGETS_SOCKET_SERVER_H_
#define KMES_FUZZ_TARGETS_SOCKET_SERVER_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_socket_server(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_SOCKET_SERVER_H_
