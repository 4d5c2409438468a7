// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The threads of a producer's socket: the loop (socket_server.h), and workers for what a client can
// make wait without a limit: to receive descriptors, and to close a connection with descriptors
// that were not received (socket_connection.h says why). An emit that waits for an open reservation
// is served by a worker, too. A stalled worker hurts its client alone,
// and outlives the server if it must: it holds nothing of the producer (socket_gate.h).
//
//   of one client process   kWorkersPerClient workers at a time; its other requests with
//   descriptors
//                           wait
//   of all clients          kMaxWorkers workers; a request gets -EBUSY that has waited for one for
//                           kMaxWaitMs, in which its client's workers have ended no request (all
//                           workers, where the client has none)
//   kManyHeld connections   wait: clients cannot send descriptors to new connections (EPERM;
//                           SO_PASSRIGHTS, Linux 6.16)
//   kMaxHeld connections    wait: no connection is accepted until a worker has ended one. Only
//                           kernels before 6.16 come to this.
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

#include "kmes/user/socket_connection.h"

namespace kmes {

using ConnectionHandle = std::unique_ptr<SocketConnection>;

struct WorkersOptions {
    // False: there are no threads for requests, and the owner does them by work_once(). For tests
    // that leave nothing to the scheduler.
    bool has_threads = true;
    Clock clock;  // of all limits in time: CLOCK_MONOTONIC
};

class SocketWorkers : public std::enable_shared_from_this<SocketWorkers> {
  public:
    static constexpr size_t kMaxWorkers = 32;
    static constexpr size_t kWorkersPerClient = 4;
    static constexpr size_t kManyHeld = 64;
    static constexpr size_t kMaxHeld = 256;
    static constexpr uint64_t kMaxWaitMs = 5000;

    // std::system_error: no event descriptor.
    explicit SocketWorkers(Producer* producer, const WorkersOptions& options = {});
    ~SocketWorkers();
    SocketWorkers(const SocketWorkers&) = delete;
    SocketWorkers& operator=(const SocketWorkers&) = delete;

    ProducerGate* gate() { return &gate_; }
    uint64_t now_ms() const;

    // Starts a thread, with the caller's signal mask. `body` may hold a handle of this.
    // std::system_error where there is none.
    void start(std::function<void()> body);

    // Serves the next request of a connection, which has descriptors. It comes back by
    // take_served(), or is closed.
    void serve(ConnectionHandle connection, uint64_t now_ms);
    // Closes it; by a worker, where that can wait.
    void close(ConnectionHandle connection);

    // Connections whose request was served. After the last call none comes back: they are closed.
    std::vector<ConnectionHandle> take_served(bool is_last = false);
    // Connections that have waited for a worker for too long; their request is not received.
    std::vector<ConnectionHandle> take_waiting(uint64_t now_ms);
    // Connections that wait for a worker.
    size_t held() const;
    // Does one request, or close, that waits for a worker, in this thread. False: none waits.
    bool work_once();

    // Readable after wake(), until clear_wake().
    int wake_fd() const { return wake_fd_; }
    void wake();
    void clear_wake();

    // Ends the threads once they have nothing to do. Waits for `grace_ms`; then leaves those that
    // are stalled to themselves.
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
        uint64_t ended_ms = 0;  // when one of them ended a request last
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
    const int wake_fd_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Jobs jobs_;                        // oldest first
    std::map<pid_t, Client> clients_;  // that have workers
    uint64_t ended_ms_ = 0;            // when a worker ended a request last
    std::vector<ConnectionHandle> served_;
    std::list<Thread> threads_;
    size_t workers_ = 0;
    size_t idle_ = 0;
    bool is_ending_ = false;
    bool takes_back_ = true;
};

}  // namespace kmes

#endif
