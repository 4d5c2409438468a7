// SPDX-License-Identifier: MIT
//
// libkmes against a hostile server (hostile_server.h): the bytes say which of its calls are made,
// what each request is answered, and when the server changes a file that it has passed or ends.
//
// Whatever they say: each call ends, with success or an error number; its requests are those of
// kmes/user/socket_protocol.h; what it maps can be read and written for as long as it is mapped,
// whatever the server does to the files; the descriptors that it gives out are close-on-exec; no
// descriptor, mapping or entry of a table is left at the end.
#ifndef KMES_FUZZ_TARGETS_SOCKET_CLIENT_H_
#define KMES_FUZZ_TARGETS_SOCKET_CLIENT_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_socket_client(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_SOCKET_CLIENT_H_
