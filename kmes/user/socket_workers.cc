// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// Threads that a client may stall. See socket_workers.h.
#include "kmes/user/socket_workers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "kmes/user/futex.h"

namespace kmes {
namespace {

constexpr auto kIdleTime = std::chrono::seconds(1);  // an idle worker ends after this time

int make_wake_fd() {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        throw std::system_error(errno, std::generic_category(),
                                "KMES socket: cannot make an event descriptor");
    return fd;
}

}  // namespace

SocketWorkers::SocketWorkers(Producer* producer, const WorkersOptions& options)
    : gate_(producer), options_(options), wake_fd_(make_wake_fd()) {}

SocketWorkers::~SocketWorkers() = default;

uint64_t SocketWorkers::now_ms() const {
    const Clock& clock = options_.clock;

    return (clock.now_ns ? clock.now_ns(clock.context) : kmes_clock_monotonic_ns()) / 1000000;
}

bool SocketWorkers::wake() {
    const uint64_t one = 1;
    const int fd = wake_fd_.get();

    while (fd >= 0 && write(fd, &one, sizeof(one)) < 0 && errno == EINTR) continue;
    return fd >= 0;
}

void SocketWorkers::clear_wake() {
    uint64_t count;

    while (read(wake_fd_.get(), &count, sizeof(count)) < 0 && errno == EINTR) continue;
}

void SocketWorkers::start(std::function<void()> body) {
    std::lock_guard lock(mutex_);

    start_locked(std::move(body));
}

// Its last step reports that it is over, so a join waits only for its return.
void SocketWorkers::start_locked(std::function<void()> body) {
    threads_.emplace_back();
    Thread* self = &threads_.back();

    try {
        self->thread = std::thread([workers = shared_from_this(), self, body = std::move(body)] {
            body();
            std::lock_guard lock(workers->mutex_);

            self->is_over = true;
            workers->changed_.notify_all();
        });
    } catch (...) {
        threads_.pop_back();
        throw;
    }
}

// Under the lock.
void SocketWorkers::join_finished() {
    std::erase_if(threads_, [](Thread& thread) {
        if (!thread.is_over) return false;
        if (thread.thread.joinable()) thread.thread.join();
        return true;
    });
}

void SocketWorkers::add(Job job) {
    std::lock_guard lock(mutex_);

    jobs_.push_back(std::move(job));
    join_finished();
    if (options_.has_threads && idle_ == 0 && workers_ < kMaxWorkers && next_job() != jobs_.end()) {
        try {
            start_locked([self = shared_from_this()] { self->work(); });
            workers_++;
        } catch (const std::system_error&) {
            // It waits for an existing worker, or for the next attempt.
        }
    }
    changed_.notify_all();
}

void SocketWorkers::serve(ConnectionHandle connection, uint64_t now) {
    pid_t client = connection->peer();

    add({std::move(connection), false, now, client});
}

void SocketWorkers::close(ConnectionHandle connection) {
    pid_t client = connection->peer();

    if (!connection->close_if_empty()) add({std::move(connection), true, 0, client});
}

std::vector<ConnectionHandle> SocketWorkers::take_served(bool is_last) {
    std::lock_guard lock(mutex_);

    if (is_last) takes_back_ = false;
    return std::exchange(served_, {});
}

std::vector<ConnectionHandle> SocketWorkers::take_waiting(uint64_t now) {
    std::vector<ConnectionHandle> result;
    std::lock_guard lock(mutex_);

    for (auto job = jobs_.begin(); job != jobs_.end();) {
        auto client = clients_.find(job->client);
        uint64_t ended = client == clients_.end() ? ended_ms_ : client->second.ended_ms;

        if (job->is_close || now < std::max(job->since_ms, ended) + kMaxWaitMs) {
            ++job;
            continue;
        }
        result.push_back(std::move(job->connection));
        job = jobs_.erase(job);
    }
    return result;
}

size_t SocketWorkers::held() const {
    std::lock_guard lock(mutex_);

    return jobs_.size();
}

// Returns the oldest job of a client that has not used its share of the workers.
SocketWorkers::Jobs::iterator SocketWorkers::next_job() {
    return std::find_if(jobs_.begin(), jobs_.end(), [this](const Job& job) {
        auto client = clients_.find(job.client);

        return client == clients_.end() || client->second.workers < kWorkersPerClient;
    });
}

void SocketWorkers::run(Job* job, std::vector<std::byte>* scratch) {
    bool goes_on = !job->is_close && job->connection->receive_by_worker(scratch, now_ms());

    if (!goes_on) job->connection.reset();
}

// Under the lock, so nothing is closed here.
void SocketWorkers::end_job(Job job) {
    Client& client = clients_[job.client];

    client.ended_ms = ended_ms_ = now_ms();
    if (--client.workers == 0) clients_.erase(job.client);
    if (!job.connection) return;
    if (takes_back_) {
        served_.push_back(std::move(job.connection));
        wake();
    } else {
        job.is_close = true;
        jobs_.push_back(std::move(job));
    }
}

// Called under `lock`, which it releases during the job. False: there is no job.
bool SocketWorkers::work_next(std::unique_lock<std::mutex>* lock, std::vector<std::byte>* scratch) {
    auto next = next_job();

    if (next == jobs_.end()) return false;
    Job job = std::move(*next);

    jobs_.erase(next);
    clients_[job.client].workers++;
    lock->unlock();
    try {
        scratch->resize(SocketConnection::kScratchBytes);
        run(&job, scratch);
    } catch (const std::bad_alloc&) {
        job.connection.reset();
    }
    lock->lock();
    end_job(std::move(job));
    changed_.notify_all();
    return true;
}

bool SocketWorkers::work_once() {
    std::vector<std::byte> scratch;
    std::unique_lock lock(mutex_);

    return work_next(&lock, &scratch);
}

void SocketWorkers::work() {
    std::vector<std::byte> scratch;
    std::unique_lock lock(mutex_);

    for (;;) {
        if (work_next(&lock, &scratch)) continue;
        if (is_ending_) break;
        idle_++;
        bool is_late = changed_.wait_for(lock, kIdleTime) == std::cv_status::timeout;

        idle_--;
        if (is_late && next_job() == jobs_.end()) break;
    }
    workers_--;
}

void SocketWorkers::end(uint64_t grace_ms) {
    std::unique_lock lock(mutex_);

    is_ending_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::milliseconds(grace_ms), [this] {
        return std::all_of(threads_.begin(), threads_.end(),
                           [](const Thread& thread) { return thread.is_over; });
    });
    join_finished();
    for (Thread& thread : threads_) thread.thread.detach();
    if (workers_ > 0) return;
    // No thread was available for them. A close here could take as long as a client likes, so they
    // stay open.
    for (Job& job : jobs_) job.connection.release();
    jobs_.clear();
}

}  // namespace kmes
