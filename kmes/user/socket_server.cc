// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The thread of a producer's socket. See socket_server.h.
#include "kmes/user/socket_server.h"

#include <utility>

#include "kmes/user/signals_blocked.h"
#include "kmes/user/socket_loop.h"

namespace kmes {

SocketServer::SocketServer(Producer* producer, std::unique_ptr<ListeningAddress> address,
                           Serves serves)
    : serves_(serves), loop_(std::make_shared<SocketLoop>(producer, std::move(address), serves)) {
    SignalsBlocked blocked;

    loop_->workers()->start([loop = loop_] { loop->run(); });
}

SocketServer::~SocketServer() {
    loop_->stop();
}

}  // namespace kmes
