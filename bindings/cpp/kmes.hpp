// SPDX-License-Identifier: MIT
//
// KMES for C++20: a reader of all CPUs as a range, in place, and with coroutines. One header over
// the C library (kmes/user/reader_set.h, link with -lkmes), no other dependency.
//
//     kmes::reader_set set;
//     for (const kmes::event& event : set.events())
//         std::printf("%.*s\n", static_cast<int>(event.type.size()), event.type.data());
//
// Errors: a function that can fail throws std::system_error with an error number of <cerrno> in
// std::generic_category(). Its overload with a std::error_code& reports the error there and throws
// nothing, as in <filesystem>. What each number means: kmes/user/libkmes.h and reader_set.h.
//
// Threads: one thread at a time uses a set and its coroutines. No function may be called from a
// signal handler.
//
// Signals: a wait may miss a signal (kmes_reader_set_poll(3)). To end by one, give events() or
// run() a limit and check a flag of the handler after it, or wait for fd() beside a signalfd.
//
// Restart: a set continues with the next producer. Its sequence numbers begin again at 1, and
// buffer(event.cpu).session differs. A set never reads more CPUs than it had at its beginning
// (kmes_reader_set_open(3)).
#ifndef KMES_BINDINGS_CPP_KMES_HPP
#define KMES_BINDINGS_CPP_KMES_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/reader_set.h"

namespace kmes {

// An event that owns its bytes.
struct event_copy {
    std::uint64_t timestamp_ns = 0;
    std::uint64_t sequence = 0;
    std::uint64_t lost_before = 0;
    std::uint16_t cpu = 0;
    std::uint8_t origin = 0;
    std::string type;
    std::vector<std::byte> payload;
};

// An event. `type` and `payload` point into the set's own copy, which the producer cannot reach.
// They are good until the next call for the set; copy() is good forever.
struct event {
    std::uint64_t timestamp_ns = 0;  // since the Unix epoch; may jump either way
    std::uint64_t sequence = 0;      // of its CPU, from 1
    std::uint64_t lost_before = 0;   // events of this CPU that were lost directly before it (5.1.9)
    std::uint16_t cpu = 0;
    std::uint8_t origin = 0;  // KMES_ORIGIN_USERSPACE and the others of kmes/abi.h
    std::string_view type;    // UTF-8
    std::span<const std::byte> payload;

    event_copy copy() const {
        return {timestamp_ns,
                sequence,
                lost_before,
                cpu,
                origin,
                std::string(type),
                {payload.begin(), payload.end()}};
    }
};

namespace detail {

inline std::error_code code_of(int negative) {
    return {-negative, std::generic_category()};
}

inline void throw_if(const std::error_code& error, const char* what) {
    if (error) throw std::system_error(error, what);
}

inline event event_of(const kmes_event_view& view) {
    return {view.timestamp,
            view.sequence,
            view.lost_before,
            view.cpu_id,
            view.origin_class,
            {reinterpret_cast<const char*>(view.type), view.type_len},
            std::as_bytes(std::span(view.payload, view.payload_len))};
}

template <typename T>
inline constexpr bool is_view_of_ring =
    std::is_reference_v<T> || std::is_pointer_v<T> || std::is_same_v<T, event> ||
    (std::ranges::range<T> && std::ranges::view<T>);

}  // namespace detail

// The next event of one of a coroutine's awaits, see reader_set::next.
class next_awaiter;

// A reader of the rings of all CPUs. Movable, not copyable.
class reader_set {
  public:
    // How long to wait. for_ever is the default.
    using timeout = std::chrono::nanoseconds;
    static constexpr timeout for_ever = timeout::max();

    // Attaches to all CPUs. Errors: kmes_reader_set_open. `options` of reader_set.h; its hooks and
    // places must live until the constructor returns, its context as long as the set.
    explicit reader_set(const kmes_reader_set_options& options = {}) {
        std::error_code error;
        *this = open(error, options);
        detail::throw_if(error, "kmes::reader_set");
    }

    // The same without an exception: after an error the result is an empty set, for which only
    // destruction, assignment and operator bool are defined.
    static reader_set open(std::error_code& error, const kmes_reader_set_options& options = {}) {
        reader_set set{empty{}};
        kmes_reader_set* handle = nullptr;
        error = detail::code_of(kmes_reader_set_open(&handle, &options));
        if (!error) set.state_ = std::make_unique<state>(handle);
        return set;
    }

    reader_set(reader_set&&) noexcept = default;
    reader_set& operator=(reader_set&&) noexcept = default;

    // False: moved from, or open() has failed.
    explicit operator bool() const { return state_ != nullptr; }

    // For the functions of reader_set.h. The set stays the owner.
    kmes_reader_set* native_handle() const { return state_->handle; }

    // Number of CPUs, the same for the life of the set. kmes_cpus_by_libkmes() has the producer's.
    unsigned cpus() const { return kmes_reader_set_cpus(native_handle()); }

    // Why a CPU is not read now; no error for one that is read. The set tries it again. ENOSYS: no
    // producer serves; kmes_reader_set_error.
    std::error_code error_of(unsigned cpu) const {
        return detail::code_of(kmes_reader_set_error(native_handle(), cpu));
    }

    kmes_reader_statistics statistics(unsigned cpu) const {
        return kmes_reader_set_statistics(native_handle(), cpu);
    }

    // Of the buffer that is read now (5.1.8.3).
    std::uint64_t generation(unsigned cpu) const {
        return kmes_reader_set_generation(native_handle(), cpu);
    }

    // Of the last event of this CPU that the set has returned; zeros before the first event. It is
    // cheap for each event. There must be such a CPU.
    const kmes_reader_buffer& buffer(unsigned cpu) const {
        return *kmes_reader_set_buffer(native_handle(), cpu);
    }

    // A descriptor for epoll and event loops, which is readable while there is something unread.
    // It becomes unreadable when try_next() or dispatch() finds every CPU empty. It belongs to the
    // set: do not close it. Errors: kmes_reader_set_fd.
    int fd(std::error_code& error) {
        const int result = kmes_reader_set_fd(native_handle());
        error = detail::code_of(result < 0 ? result : 0);
        return result;
    }
    int fd() {
        std::error_code error;
        const int result = fd(error);
        detail::throw_if(error, "kmes::reader_set::fd");
        return result;
    }

    // Up to which event a CPU was delivered: for kmes_reader_set_options::place of a later set. Its
    // session identifies the producer of that event.
    kmes_reader_place place(unsigned cpu) const {
        return kmes_reader_set_get_place(native_handle(), cpu);
    }

    // The next event of any CPU that is there now, without a sleep.
    std::optional<event> try_next(std::error_code& error) {
        kmes_event_view view;
        const int found = kmes_reader_set_next(native_handle(), &view);
        error = detail::code_of(found < 0 ? found : 0);
        if (found != KMES_READ_EVENT) return std::nullopt;
        return detail::event_of(view);
    }
    std::optional<event> try_next() {
        std::error_code error;
        std::optional<event> found = try_next(error);
        detail::throw_if(error, "kmes::reader_set::try_next");
        return found;
    }

    // Sleeps until a CPU may have something new. False: the time is over. EINTR is an error here:
    // events() and run() sleep again after it.
    bool wait(std::error_code& error, timeout limit = for_ever) {
        const int result = kmes_reader_set_wait(native_handle(), ns_of(limit));
        error = detail::code_of(result < 0 && result != -ETIMEDOUT ? result : 0);
        return result > 0;
    }
    bool wait(timeout limit = for_ever) {
        std::error_code error;
        const bool checks_again = wait(error, limit);
        detail::throw_if(error, "kmes::reader_set::wait");
        return checks_again;
    }

    // An input range of events; each increment invalidates the event before.
    class range;

    // What is there now; ends when no CPU has an event.
    range available();
    // All events forever, with sleeps between them; ends when none came for `limit`. A signal does
    // not end it.
    range events(timeout limit = for_ever);

    // In place, without a copy (E6): calls `function` with the next event as it is in the ring.
    // The producer may overwrite those bytes at any time, so `function` computes a value from them
    // and has no other effect: it may see bytes that never belonged together. The value is returned
    // only if the bytes were whole until after the call, else it is discarded and the next event is
    // tried. So nothing that the event points to can leave: a reference, pointer or view does not
    // compile. nullopt: no CPU has an event now. An exception of `function` leaves the event unread
    // if it was whole, and is discarded with it if it was not.
    template <typename Function>
    auto read_in_place(Function&& function)
        -> std::optional<std::invoke_result_t<Function&, const event&>> {
        using value = std::invoke_result_t<Function&, const event&>;
        static_assert(!detail::is_view_of_ring<value>,
                      "the result must own what it has: the bytes of the ring change");
        for (;;) {
            kmes_event_view view;
            const int found = kmes_reader_set_peek(native_handle(), &view);
            detail::throw_if(detail::code_of(found < 0 ? found : 0),
                             "kmes::reader_set::read_in_place");
            if (found != KMES_READ_EVENT) return std::nullopt;
            try {
                std::optional<value> result(std::invoke(function, detail::event_of(view)));
                if (kmes_reader_set_release(native_handle())) return result;
            } catch (...) {
                if (kmes_reader_set_peek_is_whole(native_handle())) throw;
            }
        }
    }

    // co_await set.next(): the next event, in a coroutine that run() resumes. Coroutines that wait
    // for one set are served in the order of their awaits. The event is good until the coroutine
    // suspends again. Throws in the coroutine what try_next throws.
    next_awaiter next();

    // Gives events to the coroutines that wait, while there are both, at most `most` events; does
    // not sleep. For a program with an event loop of its own. True: some coroutine still waits.
    bool dispatch(std::size_t most = 256);

    // dispatch(), with sleeps, until no coroutine waits, or until nothing has come for `limit`.
    // True: some coroutine still waits. A coroutine that runs in here must not destroy its set.
    bool run(timeout limit = for_ever);

  private:
    friend class next_awaiter;

    struct empty {};
    explicit reader_set(empty) {}

    // Has one address for the life of the set: coroutines point to it.
    struct state {
        explicit state(kmes_reader_set* set) : handle(set) {}
        state(const state&) = delete;
        state& operator=(const state&) = delete;
        inline ~state();

        kmes_reader_set* handle;
        next_awaiter* first = nullptr;  // of those that wait
        next_awaiter* last = nullptr;
    };

    static std::uint64_t ns_of(timeout limit) {
        if (limit == for_ever) return KMES_NO_TIMEOUT;
        return limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count());
    }

    // A limit that begins now. It holds for several waits.
    class waiting {
      public:
        explicit waiting(timeout limit) : limit_(std::max(limit, timeout::zero())) {}
        timeout left() const {
            if (limit_ == for_ever) return for_ever;
            return std::max(limit_ - timeout(clock::now() - begin_), timeout::zero());
        }

      private:
        using clock = std::chrono::steady_clock;
        timeout limit_;
        clock::time_point begin_ = clock::now();
    };

    // try_next, and sleeps until an event comes. nullopt: the time is over. A wait may end without
    // an event, and the next one has the rest of the time.
    std::optional<event> next_within(timeout limit) {
        if (std::optional<event> found = try_next()) return found;
        const waiting time(limit);
        for (;;) {
            std::error_code error;
            if (!wait(error, time.left()) && !error) return std::nullopt;
            if (error != std::errc::interrupted)
                detail::throw_if(error, "kmes::reader_set::events");
            if (std::optional<event> found = try_next()) return found;
        }
    }

    // As dispatch(). Returns the number of coroutines that it has resumed.
    std::size_t resume(std::size_t most);

    std::unique_ptr<state> state_;
};

// See reader_set::available and reader_set::events. Refers to its set; one of them at a time.
class reader_set::range : public std::ranges::view_interface<range> {
  public:
    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = event;
        using difference_type = std::ptrdiff_t;

        const event& operator*() const { return *range_->current_; }
        const event* operator->() const { return &*range_->current_; }
        iterator& operator++() {
            range_->advance();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator& at, std::default_sentinel_t) {
            return at.is_at_end();
        }

      private:
        friend class range;
        bool is_at_end() const { return !range_->current_; }
        explicit iterator(range* of) : range_(of) {}
        range* range_;
    };

    iterator begin() {
        advance();
        return iterator(this);
    }
    std::default_sentinel_t end() const { return {}; }

  private:
    friend class reader_set;
    range(reader_set* set, std::optional<timeout> limit) : set_(set), limit_(limit) {}
    void advance() { current_ = limit_ ? set_->next_within(*limit_) : set_->try_next(); }

    reader_set* set_;
    std::optional<timeout> limit_;
    std::optional<event> current_;
};

inline reader_set::range reader_set::available() {
    return {this, std::nullopt};
}

inline reader_set::range reader_set::events(timeout limit) {
    return {this, limit};
}

// A coroutine's await of an event. It leaves the set's list when the coroutine is destroyed.
class next_awaiter {
  public:
    next_awaiter(const next_awaiter&) = delete;
    next_awaiter& operator=(const next_awaiter&) = delete;
    ~next_awaiter() { leave(); }

    // Always by the list: a coroutine that never suspended would keep the others waiting.
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) {
        coroutine_ = coroutine;
        previous_ = state_->last;
        (previous_ ? previous_->next_ : state_->first) = this;
        state_->last = this;
        is_waiting_ = true;
    }
    event await_resume() {
        if (failure_) std::rethrow_exception(failure_);
        return *found_;
    }

  private:
    friend class reader_set;
    explicit next_awaiter(reader_set::state* state) : state_(state) {}

    void leave() {
        if (!std::exchange(is_waiting_, false)) return;
        (previous_ ? previous_->next_ : state_->first) = next_;
        (next_ ? next_->previous_ : state_->last) = previous_;
        previous_ = next_ = nullptr;
    }
    void resume_with(std::optional<event> found, std::exception_ptr failure) {
        found_ = found;
        failure_ = std::move(failure);
        leave();
        coroutine_.resume();  // and *this may be gone
    }

    reader_set::state* state_;
    next_awaiter* previous_ = nullptr;
    next_awaiter* next_ = nullptr;
    std::coroutine_handle<> coroutine_;
    std::optional<event> found_;
    std::exception_ptr failure_;
    bool is_waiting_ = false;
};

// Coroutines that still wait are never resumed; whoever owns them destroys them.
inline reader_set::state::~state() {
    while (first) first->leave();
    kmes_reader_set_close(handle);
}

inline next_awaiter reader_set::next() {
    return next_awaiter(state_.get());
}

inline std::size_t reader_set::resume(std::size_t most) {
    std::size_t count = 0;
    for (; count < most && state_->first; count++) {
        std::error_code error;
        const std::optional<event> found = try_next(error);
        if (error) {
            const auto failure =
                std::make_exception_ptr(std::system_error(error, "kmes::reader_set::next"));
            state_->first->resume_with(std::nullopt, failure);
        } else if (found) {
            state_->first->resume_with(found, nullptr);
        } else {
            break;
        }
    }
    return count;
}

inline bool reader_set::dispatch(std::size_t most) {
    resume(most);
    return state_->first != nullptr;
}

inline bool reader_set::run(timeout limit) {
    std::optional<waiting> time;
    for (;;) {
        if (resume(256) > 0) time.reset();
        if (!state_->first) return false;
        if (!time) time.emplace(limit);
        std::error_code error;
        if (!wait(error, time->left()) && !error) return true;
        if (error != std::errc::interrupted) detail::throw_if(error, "kmes::reader_set::run");
    }
}

// A coroutine that runs until its first await when it is called, and then as reader_set::run
// resumes it. The task owns it: destroying the task ends the coroutine where it waits.
class task {
  public:
    struct promise_type {
        std::exception_ptr failure;

        task get_return_object() {
            return task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { failure = std::current_exception(); }
    };

    task(task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~task() {
        if (coroutine_) coroutine_.destroy();
    }

    // True: it has returned, or thrown. Not for a task that was moved from.
    bool is_done() const { return coroutine_.done(); }
    // Throws what the coroutine has thrown.
    void get() const {
        if (coroutine_.promise().failure) std::rethrow_exception(coroutine_.promise().failure);
    }

  private:
    explicit task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
    std::coroutine_handle<promise_type> coroutine_;
};

// kmes_emit: an event from this process. Errors: libkmes.h.
inline void emit(std::string_view type, std::span<const std::byte> payload,
                 std::error_code& error) {
    error.clear();
    if (type.size() > std::numeric_limits<std::uint16_t>::max() ||
        payload.size() > std::numeric_limits<std::uint32_t>::max())
        error = std::make_error_code(std::errc::no_space_on_device);
    else if (kmes_emit(type.data(), static_cast<std::uint16_t>(type.size()), payload.data(),
                       static_cast<std::uint32_t>(payload.size())) != 0)
        error = detail::code_of(-errno);
}
inline void emit(std::string_view type, std::span<const std::byte> payload = {}) {
    std::error_code error;
    emit(type, payload, error);
    detail::throw_if(error, "kmes::emit");
}

}  // namespace kmes

#endif
