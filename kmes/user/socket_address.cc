// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Exclusive ownership of an address. See socket_address.h.
#include "kmes/user/socket_address.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "kmes/user/fork_lock.h"
#include "kmes/user/socket_protocol.h"

namespace kmes {
namespace {

constexpr int kBacklog = 64;
constexpr int kLockAttempts = 100;  // each fails only if another producer stops meanwhile

[[noreturn]] void fail_address(int error, const std::string& what) {
    throw std::system_error(error, std::generic_category(), "KMES socket: " + what);
}

[[noreturn]] void fail_in_use(const std::string& address) {
    fail_address(EADDRINUSE,
                 "cannot have the address " + address + ", which another producer or file has");
}

struct Address {
    struct sockaddr_un socket;
    socklen_t length;

    explicit Address(const std::string& text) {
        int error = kmes_socket_address(text.c_str(), &socket, &length);

        if (error || text.find('\0') != std::string::npos)
            fail_address(error ? -error : EINVAL,
                         "\"" + text +
                             "\" is not an address; expected a path of at most 107 bytes, or '@' "
                             "and a name");
    }

    const struct sockaddr* get() const { return reinterpret_cast<const struct sockaddr*>(&socket); }
};

// -- What a forked child closes ----------------------------------------------------------------

struct Listening {
    int number;
    KeptFd::Identity file;

    bool operator==(const Listening&) const = default;
};

// Fork waits for this lock, so that a child finds a consistent list.
struct kmes_fork_lock listening_lock = KMES_FORK_LOCK_INITIALIZER;
std::vector<Listening>& listening() {
    static auto* list = new std::vector<Listening>();  // never destroyed: a child may fork at exit

    return *list;
}

void close_in_child() {
    for (const Listening& entry : listening()) {
        struct stat status = {};

        // The number may be another file by now.
        if (fstat(entry.number, &status) == 0 && entry.file.is_file(status)) close(entry.number);
    }
    listening().clear();
    kmes_fork_lock_release(&listening_lock);
}

// Runs before any thread or signal handler that could fork.
const int fork_error =
    pthread_atfork([] { kmes_fork_lock_take(&listening_lock); },
                   [] { kmes_fork_lock_release(&listening_lock); }, close_in_child);

class ListeningGuard {
  public:
    ListeningGuard() {
        if (fork_error != 0) fail_address(fork_error, "cannot register with fork");
        kmes_fork_lock_take(&listening_lock);
    }
    ~ListeningGuard() { kmes_fork_lock_release(&listening_lock); }
    ListeningGuard(const ListeningGuard&) = delete;
    ListeningGuard& operator=(const ListeningGuard&) = delete;
};

int make_socket() {
    ListeningGuard guard;
    struct stat status = {};

    listening().reserve(listening().size() + 1);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || fstat(fd, &status) != 0) fail_address(errno, "cannot make one");
    listening().push_back({fd, KeptFd::Identity(status)});
    return fd;
}

int socket_option(int fd, int option) {
    int value = -1;
    socklen_t length = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

// Returns nullptr if a producer can serve at it.
const char* why_not_served(int fd) {
    struct stat status = {};

    if (fstat(fd, &status) != 0) return "is not open";
    if (!S_ISSOCK(status.st_mode)) return "is not a socket";
    if (socket_option(fd, SO_DOMAIN) != AF_UNIX) return "is not a Unix socket";
    if (socket_option(fd, SO_TYPE) != SOCK_SEQPACKET) return "is not of type SOCK_SEQPACKET";
    return socket_option(fd, SO_ACCEPTCONN) == 1 ? nullptr : "does not listen";
}

void take_socket(int fd) {
    ListeningGuard guard;
    struct stat status = {};

    listening().reserve(listening().size() + 1);
    if (fstat(fd, &status) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        fail_address(errno, "cannot use the passed descriptor " + std::to_string(fd));
    listening().push_back({fd, KeptFd::Identity(status)});
}

// A child would inherit the socket until it is closed. After that its number may be another file.
void close_listening(KeptFd* fd) {
    const Listening closed = {fd->number(), fd->identity()};

    fd->close();
    ListeningGuard guard;

    std::erase(listening(), closed);
}

// Returns the error of a connect by a socket of another type. It makes no connection: EPROTOTYPE if
// a process has the address, listening or not, and ECONNREFUSED if none has it.
int connect_in_vain(const std::string& path) {
    Address address(path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) fail_address(errno, "cannot check " + path);
    int error = connect(fd, address.get(), address.length) == 0 ? 0 : errno;

    close(fd);
    return error;
}

// As connect_in_vain, for a socket file of this user whose mode lacks the permission of its owner
// (serve(path, 060)). The file gets it for a moment. It is named by its descriptor, as another
// process could put another file at the path.
int connect_in_vain_as_owner(const std::string& path, const struct stat& status) {
    int file = open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    const std::string opened = "/proc/self/fd/" + std::to_string(file);
    struct stat now = {};
    int error = EACCES;

    if (file < 0) return error;
    if (fstat(file, &now) == 0 && KeptFd::Identity(now).is_file(status) &&
        chmod(opened.c_str(), (status.st_mode & 07777) | S_IWUSR) == 0) {
        error = connect_in_vain(opened);
        chmod(opened.c_str(), status.st_mode & 07777);
    }
    close(file);
    return error;
}

// True if a process has the path: it is bound to a socket, or it is no socket at all.
bool is_in_use(const std::string& path) {
    struct stat status = {};

    if (lstat(path.c_str(), &status) != 0) return false;  // bind returns the error
    if (!S_ISSOCK(status.st_mode)) return true;
    int error = connect_in_vain(path);

    if (error == EACCES && status.st_uid == geteuid() && !(status.st_mode & S_IWUSR))
        error = connect_in_vain_as_owner(path, status);
    return error != ECONNREFUSED && error != ENOENT;
}

}  // namespace

// -- The lock ----------------------------------------------------------------------------------

// A record lock. The process loses it when it closes any descriptor of the file, so a second
// producer of the process must not open it. The list contains the files that are locked here.
class AddressLock {
  public:
    // Throws std::system_error: EADDRINUSE if a producer holds it, or the error of the system call.
    explicit AddressLock(const std::string& path) : path_(path + ".lock") {
        std::lock_guard guard(mutex());

        for (int attempt = 0; attempt < kLockAttempts; attempt++) {
            if (try_once(path)) return;
        }
        fail_in_use(path);
    }

    // The file is removed first: a later open creates another file.
    ~AddressLock() {
        std::lock_guard guard(mutex());

        // A program that has closed the file has lost the lock, and another producer may have it.
        const bool is_held =
            std::ranges::all_of(fds_, [](const KeptFd& fd) { return fd.get() >= 0; });

        if (is_held && is_at_path()) unlink(path_.c_str());
        std::erase(locks(), this);
    }
    AddressLock(const AddressLock&) = delete;
    AddressLock& operator=(const AddressLock&) = delete;

  private:
    static std::mutex& mutex() {
        static auto* mutex = new std::mutex();

        return *mutex;
    }
    static std::vector<AddressLock*>& locks() {
        static auto* locks = new std::vector<AddressLock*>();

        return *locks;
    }

    static AddressLock* holder(const struct stat& status) {
        for (AddressLock* lock : locks()) {
            // A forked child has a copy of the list, but none of the locks.
            if (lock->pid_ == getpid() && lock->file_.is_file(status)) return lock;
        }
        return nullptr;
    }

    bool is_at_path() const {
        struct stat there = {};

        return lstat(path_.c_str(), &there) == 0 && file_.is_file(there);
    }

    // In a sticky folder the kernel rejects O_CREAT without O_EXCL for the file of another user.
    int open_file() const {
        const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
        int fd = open(path_.c_str(), flags);

        if (fd >= 0 || errno != ENOENT) return fd;
        fd = open(path_.c_str(), flags | O_CREAT | O_EXCL, 0600);
        if (fd >= 0) fchmod(fd, 0600);  // independent of the umask: the next producer opens it
        return fd;
    }

    // False: the file is another one by now.
    bool try_once(const std::string& path) {
        struct flock whole = {};
        struct stat status = {};

        if (stat(path_.c_str(), &status) == 0 && holder(status)) fail_in_use(path);
        locks().reserve(locks().size() + 1);
        int fd = open_file();

        if (fd < 0 && errno == EEXIST) return false;
        if (fd < 0) fail_address(errno, "cannot open the lock file " + path_);
        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
            if (AddressLock* other = holder(status)) {
                other->fds_.emplace_back(fd);  // a close would drop the lock
                fail_in_use(path);
            }
            file_ = KeptFd::Identity(status);
            whole.l_type = F_WRLCK;
            whole.l_whence = SEEK_SET;
            if (fcntl(fd, F_SETLK, &whole) == 0) {
                if (is_at_path()) {
                    fds_.emplace_back(fd);
                    locks().push_back(this);
                    return true;
                }
                close(fd);
                return false;
            }
        } else {
            errno = EADDRINUSE;
        }
        int error = errno;

        close(fd);
        if (error == EAGAIN || error == EACCES || error == EADDRINUSE) fail_in_use(path);
        fail_address(error, "cannot lock " + path_);
    }

    const std::string path_;
    const pid_t pid_ = getpid();
    KeptFd::Identity file_;
    std::vector<KeptFd> fds_;
};

// -- The address -------------------------------------------------------------------------------

ListeningAddress::ListeningAddress(const std::string& address, unsigned mode)
    : is_abstract_(!address.empty() && address[0] == '@') {
    Address checked(address);

    if (mode > 0777)
        fail_address(EINVAL, "mode " + std::to_string(mode) + " is more than 511 (octal 777)");
    // Before the lock, so that an address in use is reported even in a folder that is not writable.
    if (!is_abstract_ && is_in_use(address)) fail_in_use(address);
    if (!is_abstract_) lock_ = std::make_unique<AddressLock>(address);
    try {
        fd_ = KeptFd(make_socket());
        if (is_abstract_)
            bind_name(address);
        else
            bind_path(address, mode);
        note_name();
    } catch (...) {
        release();
        close_socket();
        throw;
    }
}

ListeningAddress::ListeningAddress(int listening_fd) : is_passed_(true) {
    if (const char* why = why_not_served(listening_fd))
        fail_address(EINVAL, "the passed descriptor " + std::to_string(listening_fd) + " " + why);
    take_socket(listening_fd);
    fd_ = KeptFd(listening_fd);
    note_name();
    is_abstract_ = name_.sun_path[0] == '\0';
}

ListeningAddress::~ListeningAddress() {
    release();
    close_socket();
}

void ListeningAddress::bind_name(const std::string& address) {
    Address at(address);

    if (bind(fd_.number(), at.get(), at.length) != 0) {
        if (errno == EADDRINUSE) fail_in_use(address);
        fail_address(errno, "cannot have the address " + address);
    }
    if (listen(fd_.number(), kBacklog) != 0) fail_address(errno, "cannot listen at " + address);
}

// Under the lock. The file first gets the mode of the socket less the umask; then the missing bits
// are added. It thus never has more than `mode`, and the umask, which all threads share, is
// unchanged.
void ListeningAddress::bind_path(const std::string& address, unsigned mode) {
    Address at(address);
    struct stat status = {};

    if (is_in_use(address)) fail_in_use(address);
    if (fchmod(fd_.number(), mode) != 0)
        fail_address(errno, "cannot set the permissions of " + address);
    unlink(address.c_str());  // the socket of a dead producer, or nothing
    if (bind(fd_.number(), at.get(), at.length) != 0) {
        if (errno == EADDRINUSE) fail_in_use(address);
        fail_address(errno, "cannot have the address " + address);
    }
    if (lstat(address.c_str(), &status) != 0) fail_address(errno, "cannot find " + address);
    path_ = address;
    path_file_ = KeptFd::Identity(status);
    if ((status.st_mode & 07777) != mode &&
        fchmodat(AT_FDCWD, address.c_str(), mode, AT_SYMLINK_NOFOLLOW) != 0)
        fail_address(errno, "cannot set the permissions of " + address);
    if (listen(fd_.number(), kBacklog) != 0) fail_address(errno, "cannot listen at " + address);
    // A producer of an earlier version knows no lock, and may have taken the path for that of a
    // dead one.
    if (lstat(address.c_str(), &status) != 0 || !path_file_.is_file(status)) fail_in_use(address);
}

void ListeningAddress::note_name() {
    name_length_ = sizeof(name_);
    if (getsockname(fd_.number(), reinterpret_cast<struct sockaddr*>(&name_), &name_length_) != 0)
        name_length_ = 0;
}

void ListeningAddress::wake_poll() const {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    // It fails if the backlog is full. Then the socket is readable already.
    if (fd >= 0) connect(fd, reinterpret_cast<const struct sockaddr*>(&name_), name_length_);
    if (fd >= 0) close(fd);
}

void ListeningAddress::release() {
    struct stat status = {};

    if (!path_.empty() && lstat(path_.c_str(), &status) == 0 && path_file_.is_file(status))
        unlink(path_.c_str());
    path_.clear();
    lock_.reset();
}

void ListeningAddress::close_socket() {
    if (fd_.number() >= 0) close_listening(&fd_);
}

}  // namespace kmes
