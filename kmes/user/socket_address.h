// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The address of a producer's socket. One producer at a time listens there, and a crashed producer
// leaves it to the next one. Its path has exactly the requested permissions.
//
// A record lock (fcntl) on the file PATH.lock guards a path. The producer holds it until it stops.
// Only the holder removes the socket of a dead producer, and binds. A record lock belongs to the
// process: the kernel drops it when the process ends, and a forked child does not inherit it. A
// program that opens and closes PATH.lock of its own producer drops it, too; then only the socket
// guards the path. The lock file is removed with the socket. After a crash both remain, and the
// next producer takes both.
//
// The kernel guards an abstract name: it is bound to one socket.
//
// A service manager can listen instead of the producer, and pass the socket. Then the manager owns
// the address. The producer removes nothing, the connections that it has not accepted are for the
// next producer, and the manager starts one producer at a time.
//
// A forked child closes its copy of the listening socket at once (pthread_atfork), so that a child
// that outlives its producer holds no address.
#ifndef KMES_USER_SOCKET_ADDRESS_H
#define KMES_USER_SOCKET_ADDRESS_H

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kmes/user/kept_fd.h"

namespace kmes {

class AddressLock;

class ListeningAddress {
  public:
    // Listens at `address`: a path, or an abstract name if it begins with '@'. `mode` is the
    // permissions of a path, 0 to 0777, whatever the umask is; the path never has more. Throws
    // std::system_error, and leaves nothing:
    //   EADDRINUSE  a process has the address, or the path is not a socket of a dead process
    //   EINVAL, ENAMETOOLONG  the address or the mode is invalid
    //   or the error of the system call.
    ListeningAddress(const std::string& address, unsigned mode);
    // Serves at a socket on which another process listens, too. Takes ownership of `listening_fd`.
    // Throws std::system_error EINVAL if it is no listening Unix socket of type SOCK_SEQPACKET;
    // then the caller still owns it.
    explicit ListeningAddress(int listening_fd);
    // Calls release() and close_socket().
    ~ListeningAddress();
    ListeningAddress(const ListeningAddress&) = delete;
    ListeningAddress& operator=(const ListeningAddress&) = delete;

    // The listening socket, which is non-blocking. -1 if the program has closed it.
    int fd() const { return fd_.get(); }
    bool is_abstract() const { return is_abstract_; }
    // True if the address remains after the producer, with the connections that were not accepted.
    bool is_passed() const { return is_passed_; }

    // Makes the socket readable, so that a poll() for it returns. Such a poll keeps the socket, and
    // with it the address, also after the program has closed all descriptors.
    void wake_poll() const;
    // Gives up a path: removes the socket file, if it is still the file of this object, and the
    // lock. The next producer can then take it. close_socket() gives up an abstract name.
    void release();
    // A client whose connection was not accepted can make it block without a limit (see
    // socket_workers.h).
    void close_socket();

  private:
    void bind_path(const std::string& address, unsigned mode);
    void bind_name(const std::string& address);
    void note_name();

    KeptFd fd_;
    struct sockaddr_un name_ = {};  // of the bound socket
    socklen_t name_length_ = 0;
    bool is_abstract_ = false;
    bool is_passed_ = false;
    std::string path_;  // bound; empty if there is nothing to remove
    KeptFd::Identity path_file_;
    std::unique_ptr<AddressLock> lock_;
};

}  // namespace kmes

#endif
