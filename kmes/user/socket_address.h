// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The address of a producer's socket: one producer at a time listens there, a crashed one leaves it
// to the next, and its path has exactly the permissions that were asked for.
//
// A path is guarded by a record lock (fcntl) on the file PATH.lock, which the producer holds until
// it stops. Only the holder removes a socket that a dead producer left, and binds. A record lock
// belongs to the process: the kernel drops it when the process ends, and a forked child does not
// inherit it. (A program that opens and closes PATH.lock of its own producer drops it, too. Then
// the socket alone guards the path.) The lock file goes with the socket. After a crash both stay,
// and the next producer takes both.
//
// An abstract name is guarded by the kernel: a name is bound to one socket.
//
// A service manager can listen in place of the producer, and pass the socket. Then the manager has
// the address: the producer removes nothing, the connections that it has not accepted are for the
// next producer, and the manager starts one producer at a time.
//
// A forked child closes its copy of the listening socket at once (pthread_atfork), so that a child
// that outlives its producer holds no address.
#ifndef KMES_USER_SOCKET_ADDRESS_H
#define KMES_USER_SOCKET_ADDRESS_H

#include <cstdint>
#include <memory>
#include <string>

namespace kmes {

class AddressLock;

class ListeningAddress {
  public:
    // Listens at `address`: a path, or an abstract name where it begins with '@'. `mode` has the
    // permissions of a path, 0 to 0777, whatever the umask is; the path never has more.
    // std::system_error: EADDRINUSE where a process has the address, or where the path is anything
    // but a socket that a dead process left; EINVAL or ENAMETOOLONG for an address or a mode that
    // is none; or the error of the system call. Nothing is left then.
    ListeningAddress(const std::string& address, unsigned mode);
    // Serves at a socket that another process listens at, too. Takes `listening_fd`.
    // std::system_error EINVAL where it is no listening Unix socket of type SOCK_SEQPACKET; then it
    // stays the caller's.
    explicit ListeningAddress(int listening_fd);
    // release() and close_socket().
    ~ListeningAddress();
    ListeningAddress(const ListeningAddress&) = delete;
    ListeningAddress& operator=(const ListeningAddress&) = delete;

    // The listening socket, which does not block.
    int fd() const { return fd_; }
    bool is_abstract() const { return is_abstract_; }
    // The address stays after the producer, with the connections that were not accepted.
    bool is_passed() const { return is_passed_; }

    // Gives up a path: removes the socket file, if it is still this one's, and the lock. The next
    // producer can have it. An abstract name is given up by close_socket().
    void release();
    // May block for as long as a client likes, whose connection was not accepted (see
    // socket_workers.h).
    void close_socket();

  private:
    void bind_path(const std::string& address, unsigned mode);
    void bind_name(const std::string& address);

    int fd_ = -1;
    bool is_abstract_ = false;
    bool is_passed_ = false;
    std::string path_;  // bound; empty where nothing is to be removed
    uint64_t path_device_ = 0;
    uint64_t path_inode_ = 0;
    std::unique_ptr<AddressLock> lock_;
};

}  // namespace kmes

#endif
