// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The threads of a producer's socket: the loop (socket_server.h), and workers. A worker executes an
// action in which a client can make it wait without a limit. These actions are the receipt of
// descriptors, and the close of a connection with unreceived descriptors (socket_connection.h says
// why). A worker also serves an emit that waits for an open reservation. A stalled worker harms
// only its client. It may outlive the server, because it holds nothing of the producer
// (socket_gate.h).
//
//   one client process      kWorkersPerClient workers at a time; its other requests with
//                           descriptors wait
//   all clients             kMaxWorkers workers; a request gets -EBUSY if it has waited for
//                           kMaxWaitMs in which its client's workers have ended no request
//                           (all workers, if the client has none)
//   kManyHeld connections   wait: clients cannot send descriptors to new connections (EPERM;
//                           SO_PASSRIGHTS, Linux 6.16)
//   kMaxHeld connections    wait: no connection is accepted until a worker has ended one. Only
//                           kernels before 6.16 reach this.
//
// Other requests (attach, identify, most emits with an inline body) need no worker.
#ifndef KMES_USER_SOCKET_WORKERS_H
#define KMES_USER_SOCKET_WORKERS_H

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kmes/user/kept_fd.h"
#include "kmes/user/socket_connection.h"

namespace kmes {

using ConnectionHandle = std::unique_ptr<SocketConnection>;

struct WorkersOptions {
    // False: there are no threads for requests, and the owner executes them by work_once(). For
    // tests that must not depend on the scheduler.
    bool has_threads = true;
    Clock clock;  // for all time limits; default: CLOCK_MONOTONIC
};

class SocketWorkers : public std::enable_shared_from_this<SocketWorkers> {
  public:
    static constexpr size_t kMaxWorkers = 32;
    static constexpr size_t kWorkersPerClient = 4;
    static constexpr size_t kManyHeld = 64;
    static constexpr size_t kMaxHeld = 256;
    static constexpr uint64_t kMaxWaitMs = 5000;

    // Throws std::system_error if there is no event descriptor.
    explicit SocketWorkers(Producer* producer, const WorkersOptions& options = {});
    ~SocketWorkers();
    SocketWorkers(const SocketWorkers&) = delete;
    SocketWorkers& operator=(const SocketWorkers&) = delete;

    ProducerGate* gate() { return &gate_; }
    uint64_t now_ms() const;

    // Starts a thread, with the caller's signal mask. `body` may hold a handle of this object.
    // Throws std::system_error if there is no thread.
    void start(std::function<void()> body);

    // Serves the next request of a connection, which has descriptors. take_served() returns the
    // connection, or it is closed.
    void serve(ConnectionHandle connection, uint64_t now_ms);
    // Closes it, by a worker if that can wait.
    void close(ConnectionHandle connection);

    // Returns the connections whose request was served. After the last call none is returned: they
    // are closed.
    std::vector<ConnectionHandle> take_served(bool is_last = false);
    // Returns the connections that have waited too long for a worker. Their request is not
    // received.
    std::vector<ConnectionHandle> take_waiting(uint64_t now_ms);
    // The number of connections that wait for a worker.
    size_t held() const;
    // Executes one waiting request or close in this thread. False: none waits.
    bool work_once();

    // Readable after wake(), until clear_wake().
    // -1 if the program has closed it.
    int wake_fd() const { return wake_fd_.get(); }
    // False: the program has closed the descriptor.
    bool wake();
    void clear_wake();

    // Ends the threads when they have no work. Waits for at most `grace_ms`, and then abandons the
    // stalled ones.
    void end(uint64_t grace_ms);

  private:
    struct Job {
        ConnectionHandle connection;
        bool is_close = false;
        uint64_t since_ms = 0;
        pid_t client = 0;
    };
    struct Client {
        size_t workers = 0;
        uint64_t ended_ms = 0;  // the last time that one of them ended a request
    };
    struct Thread {
        std::thread thread;
        bool is_over = false;
    };
    using Jobs = std::list<Job>;

    void add(Job job);
    void start_locked(std::function<void()> body);
    void join_finished();
    void work();
    bool work_next(std::unique_lock<std::mutex>* lock, std::vector<std::byte>* scratch);
    Jobs::iterator next_job();
    void run(Job* job, std::vector<std::byte>* scratch);
    void end_job(Job job);

    ProducerGate gate_;
    const WorkersOptions options_;
    const KeptFd wake_fd_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Jobs jobs_;                        // oldest first
    std::map<pid_t, Client> clients_;  // clients that have workers
    uint64_t ended_ms_ = 0;            // the last time that a worker ended a request
    std::vector<ConnectionHandle> served_;
    std::list<Thread> threads_;
    size_t workers_ = 0;
    size_t idle_ = 0;
    bool is_ending_ = false;
    bool takes_back_ = true;
};

}  // namespace kmes

#endif
