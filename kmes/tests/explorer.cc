// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The explorer (explorer.h): the baton, the schedules, and the judgement of a run.
 */
#include "kmes/tests/explorer.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

namespace kmes::tests {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kEndlessLoads = 20000;

/*
 * A thread can hand over before each access to the metadata, and before each of this many words of
 * data. The schedules of a scenario grow with the square of its accesses. Where an event is kScale
 * times as long, each word would mean minutes for what form A has shown.
 */
constexpr std::uint64_t kWordsPerStop = kScale == 1 ? 1 : 2 * kScale;

bool is_data(enum kmes_order_label label) {
    return label == KMES_ORDER_DATA || label == KMES_ORDER_READ_DATA ||
           label == KMES_ORDER_SWAP_DATA;
}

enum Actor { kConsumer, kProducer };

/* Chooses the thread that runs, and the access after which it hands over. */
class Baton {
  public:
    Baton(std::uint64_t consumer_stop, std::uint64_t producer_stop, Actor first)
        : stop_{consumer_stop, producer_stop}, turn_(first) {}

    /* Called by `actor` before each of its accesses. */
    void access(Actor actor, enum kmes_order_label label) {
        if (is_data(label) && words_[actor]++ % kWordsPerStop) return;
        if (count_[actor]++ == stop_[actor]) hand_over(actor);
    }

    void wait_for_turn(Actor actor) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return turn_ == actor; });
    }

    /* The other thread runs until it hands over or has ended. */
    void hand_over(Actor actor) {
        const Actor other = actor == kConsumer ? kProducer : kConsumer;
        std::unique_lock lock(mutex_);
        if (ended_[other]) return;
        turn_ = other;
        changed_.notify_all();
        changed_.wait(lock, [&] { return turn_ == actor; });
    }

    void end(Actor actor) {
        std::unique_lock lock(mutex_);
        ended_[actor] = true;
        turn_ = actor == kConsumer ? kProducer : kConsumer;
        changed_.notify_all();
    }

    /* Waits until the other thread has ended. */
    void let_end(Actor other) {
        const Actor actor = other == kConsumer ? kProducer : kConsumer;
        stop_[other] = kNever;
        hand_over(actor);
    }

    std::uint64_t accesses(Actor actor) const { return count_[actor]; }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t stop_[2];
    std::uint64_t count_[2] = {0, 0};
    std::uint64_t words_[2] = {0, 0};
    bool ended_[2] = {false, false};
    Actor turn_;
};

/* Puts both threads on one processor: a hand-over is then a switch, without a call to another
 * processor. */
class PinnedToOneProcessor {
  public:
    PinnedToOneProcessor() {
        cpu_set_t one;
        CPU_ZERO(&one);
        sched_getaffinity(0, sizeof(before_), &before_);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof(one), &one);
    }
    ~PinnedToOneProcessor() { sched_setaffinity(0, sizeof(before_), &before_); }

  private:
    cpu_set_t before_;
};

/* A second thread that runs one script after another: a new thread for each would mean thousands
 * a second. */
class SecondThread {
  public:
    SecondThread() : thread_([this] { work(); }) {}
    ~SecondThread() {
        run({});
        thread_.join();
    }
    SecondThread(const SecondThread&) = delete;
    SecondThread& operator=(const SecondThread&) = delete;

    /* Begins `script`; call wait() before the next one. An empty script ends the thread. */
    void run(std::function<void()> script) {
        std::unique_lock lock(mutex_);
        script_ = std::move(script);
        is_busy_ = true;
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !is_busy_; });
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return is_busy_; });
            if (!script_) return;
            lock.unlock();
            script_();
            lock.lock();
            is_busy_ = false;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> script_;
    bool is_busy_ = false;
    std::thread thread_;
};

/* Two threads that hand over to each other on one processor never leave it idle. Some schedulers
 * (Linux 6.18 with autogroup) then run nothing else on it for seconds. */
class Politeness {
  public:
    void make_room() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        last_ = std::chrono::steady_clock::now();
    }

  private:
    std::chrono::steady_clock::time_point last_;
};

thread_local Actor this_actor = kConsumer;

void consume(Run& run, Consumer& consumer) {
    while (!run.is_over()) {
        consumer.drain(run);
        if (run.is_over() || consumer.wait(run) == -EINTR) break;
    }
}

/* The result of one schedule: how many accesses each thread made. */
struct Outcome {
    std::optional<std::string> fault;
    std::uint64_t consumer_accesses;
    std::uint64_t producer_accesses;
};

Outcome run_schedule(const Scenario& scenario, const ConsumerFactory& make_consumer,
                     SecondThread& second, std::uint64_t consumer_stop, std::uint64_t producer_stop,
                     Actor first) {
    Run run(scenario);
    if (scenario.before) scenario.before(run);
    std::unique_ptr<Consumer> consumer = make_consumer(run);
    Baton baton(consumer_stop, producer_stop, first);
    run.finish_producer = [&] { baton.let_end(kProducer); };
    run.begin_owing();
    const bool opens_inside = !scenario.prologue;
    if (!opens_inside) {
        if (consumer->open(run) != 0) run.fault("open failed");
        consumer->drain(run);
        scenario.prologue(run);
    }
    ScopedHook hook(
        [&](const kmes_order_access& access) { baton.access(this_actor, access.label); });
    second.run([&] {
        this_actor = kProducer;
        baton.wait_for_turn(kProducer);
        scenario.script(run);
        baton.end(kProducer);
    });
    this_actor = kConsumer;
    baton.wait_for_turn(kConsumer);
    if (opens_inside && consumer->open(run) != 0) run.fault("open failed");
    consume(run, *consumer);
    baton.let_end(kProducer);
    second.wait();
    return {run.verdict(), baton.accesses(kConsumer), baton.accesses(kProducer)};
}

void note(Exploration& exploration, const Outcome& outcome, std::uint64_t consumer_stop,
          std::uint64_t producer_stop, Actor first) {
    exploration.runs++;
    if (!outcome.fault) return;
    if (exploration.failed++ == 0)
        exploration.first_fault = *outcome.fault + " (consumer to " +
                                  std::to_string(consumer_stop) + ", producer to " +
                                  std::to_string(producer_stop) + ", " +
                                  (first == kConsumer ? "consumer" : "producer") + " first)";
}

void explore_order(const Scenario& scenario, const ConsumerFactory& make_consumer,
                   SecondThread& second, Actor first, Until until, const Share& share,
                   Exploration& exploration) {
    Politeness politeness;
    for (std::uint64_t outer = share.number;; outer += share.shares) {
        bool outer_was_reached = false;
        for (std::uint64_t inner = 0;; inner++) {
            const std::uint64_t consumer_stop = first == kConsumer ? outer : inner;
            const std::uint64_t producer_stop = first == kConsumer ? inner : outer;
            const Outcome outcome =
                run_schedule(scenario, make_consumer, second, consumer_stop, producer_stop, first);
            note(exploration, outcome, consumer_stop, producer_stop, first);
            politeness.make_room();
            if (exploration.failed && until == Until::kFirstFault) return;
            const std::uint64_t outer_accesses =
                first == kConsumer ? outcome.consumer_accesses : outcome.producer_accesses;
            const std::uint64_t inner_accesses =
                first == kConsumer ? outcome.producer_accesses : outcome.consumer_accesses;
            outer_was_reached = outer_was_reached || outer_accesses > outer;
            if (inner_accesses <= inner) break;
        }
        if (!outer_was_reached) break;
    }
}

}  // namespace

Run::Run(const Scenario& scenario) : world(scenario.setup) {
    world.on_sleep = [this](std::uint32_t* word, std::uint32_t expected, std::uint64_t) {
        return sleep(word, expected);
    };
}

void Run::remember(std::uint64_t sequence, std::uint64_t event_bytes) {
    const std::uint64_t end_pos =
        (emitted_.empty() || emitted_.back().origin != &world.current() ? world.cpu.buffer->frontier
                                                                        : emitted_.back().end_pos) +
        event_bytes;
    emitted_.push_back({sequence, event_bytes, end_pos, &world.current()});
}

/* The event is recorded before the call, because it may be delivered before the call returns. */
void Run::emit(std::uint64_t event_bytes) {
    if (event_bytes <= world.cpu.buffer->capacity / 2)
        remember(world.cpu.sequence + 1, event_bytes);
    world.emit_sized(event_bytes);
}

void Run::batch(const std::vector<std::uint64_t>& sizes) {
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    for (const std::uint64_t size : sizes) {
        remember(world.cpu.sequence + 1, size);
        world.batch_emit_sized(batch, size);
    }
    kmes_batch_end(&world.cpu, &batch);
}

void Run::swap(std::uint64_t capacity_bytes, enum kmes_swap_positions positions) {
    if (positions != KMES_SWAP_KEEP) positions_kept_ = false;
    if (world.swap(capacity_bytes, positions) != 0) fault("the swap failed");
}

void Run::nudge_all() {
    for (const auto& buffer : world.buffers) {
        if (&buffer->buffer != world.cpu.buffer) kmes_buffer_nudge(&world.cpu, &buffer->buffer);
    }
}

void Run::fault(const std::string& what) {
    faults_.push_back(what);
}

bool Run::is_endless() {
    if (++loads_ < kEndlessLoads) return false;
    if (faults_.empty()) fault("an endless loop");
    return true;
}

void Run::deliver(const Delivered& event) {
    const std::string name = std::to_string(event.sequence);
    const auto found = std::find_if(emitted_.begin(), emitted_.end(), [&](const Emitted& emitted) {
        return emitted.sequence == event.sequence;
    });
    if (found == emitted_.end()) return fault("invented: " + name);
    if (!is_self_describing(event) || event.payload.size() != found->bytes - KMES_EVENT_MIN_BYTES)
        return fault("torn: " + name);
    if (!delivered_.empty() && event.sequence <= delivered_.back())
        return fault("doubled or reordered: " + name);
    if (positions_kept_ && found->end_pos > found->origin->shared_write_pos())
        return fault("delivered before it was published: " + name);
    delivered_.push_back(event.sequence);
}

/* Not owed if it was overwritten in its own buffer or, after two swaps, in a later one. */
bool Run::is_owed(const Emitted& event) {
    const std::uint64_t pos = event.end_pos - event.bytes;
    if (pos < event.origin->buffer.tail) return false;
    if (event.origin == owing_from_ || event.origin == &world.current()) return true;
    return positions_kept_ && pos >= world.cpu.buffer->tail;
}

std::vector<std::uint64_t> Run::owed_and_missing() {
    std::vector<std::uint64_t> missing;
    for (const Emitted& event : emitted_) {
        if (is_owed(event) &&
            !std::binary_search(delivered_.begin(), delivered_.end(), event.sequence))
            missing.push_back(event.sequence);
    }
    return missing;
}

void Run::begin_owing() {
    owing_from_ = &world.current();
}

int Run::sleep(std::uint32_t* word, std::uint32_t expected) {
    if (*word != expected) return 0;
    const std::size_t wakes_before = world.wakes.size();
    finish_producer();
    for (std::size_t i = wakes_before; i < world.wakes.size(); i++) {
        if (world.wakes[i]->shared.futex_counter == word) return 0;
    }
    over_ = true;
    return -EINTR; /* no wake will come any more: a missing event now means a lost wake-up */
}

std::optional<std::string> Run::verdict() {
    if (!faults_.empty()) return faults_.front();
    const std::vector<std::uint64_t> missing = owed_and_missing();
    if (!missing.empty())
        return "published, and not delivered before the last sleep: " +
               std::to_string(missing.front());
    return std::nullopt;
}

Exploration explore(const Scenario& scenario, const ConsumerFactory& make_consumer, Until until,
                    const Share& share) {
    const PinnedToOneProcessor pinned;
    SecondThread second;
    Exploration exploration;
    explore_order(scenario, make_consumer, second, kConsumer, until, share, exploration);
    if (exploration.failed && until == Until::kFirstFault) return exploration;
    explore_order(scenario, make_consumer, second, kProducer, until, share, exploration);
    return exploration;
}

}  // namespace kmes::tests
