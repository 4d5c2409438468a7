// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The address of a producer's socket. See socket_protocol.h.
 */
#include "kmes/user/socket_protocol.h"

#include <errno.h>
#include <string.h>

int kmes_socket_address(const char* text, struct sockaddr_un* address, socklen_t* length) {
    size_t bytes = strlen(text);
    bool is_abstract = text[0] == '@';

    if (bytes < (is_abstract ? 2u : 1u)) return -EINVAL;
    if (bytes >= sizeof(address->sun_path)) return -ENAMETOOLONG;
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, text, bytes);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    if (is_abstract)
        address->sun_path[0] = '\0';
    else
        *length += 1; /* a zero ends a path; an abstract name ends by its length */
    return 0;
}
