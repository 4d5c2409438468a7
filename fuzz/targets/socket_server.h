// SPDX-License-Identifier: MIT
//
// Hostile peers of a producer's socket (docs/producer-socket.md), step by step in one thread. The
// bytes choose each packet, its connection and its descriptors. They also choose when a peer stops
// reading, announces the end or leaves, and when a passed file changes. They order the steps of the
// server's loop and its workers, emissions, resizes, and time.
//
// For any input, these must hold:
// - Each answer is the documented one for its request.
// - An honest peer attaches, emits and reads its event.
// - The rings contain exactly the emitted events.
// - No descriptor and no mapping is left at the end.
#ifndef KMES_FUZZ_TARGETS_SOCKET_SERVER_H_
#define KMES_FUZZ_TARGETS_SOCKET_SERVER_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_socket_server(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_SOCKET_SERVER_H_
