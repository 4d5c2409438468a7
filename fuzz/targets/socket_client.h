// SPDX-License-Identifier: MIT
//
// libkmes with a hostile server (hostile_server.h). The bytes choose the calls, the answer to each
// request, and the times at which the server changes a passed file or ends.
//
// For any input, these must hold:
// - Each call ends, with success or an error number.
// - Its requests are those of kmes/user/socket_protocol.h.
// - A mapping can be read and written while it exists, whatever the server does to the files.
// - The returned descriptors are close-on-exec.
// - No descriptor, mapping or table entry is left at the end.
#ifndef KMES_FUZZ_TARGETS_SOCKET_CLIENT_H_
#define KMES_FUZZ_TARGETS_SOCKET_CLIENT_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_socket_client(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_SOCKET_CLIENT_H_
