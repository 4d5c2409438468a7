// SPDX-License-Identifier: MIT
//
// The machine behind play(): the core with its buffers, the model, consumers that can pause between
// any two accesses, and the checks. One machine plays one script, on one thread.
//
//   machine.cc     the script: operation after operation, which flow runs, the one hook
//   operations.cc  the calls of each operation, in the core and in the model
//   audit.cc       checks the producer, access by access, against the plan of the model
//   consumers.cc   the actions and deliveries of consumers
//   state.cc       the state as text
#ifndef KMES_PROPS_MACHINE_MACHINE_H_
#define KMES_PROPS_MACHINE_MACHINE_H_

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kmes/reader.h"
#include "kmes/ring.h"
#include "kmes/tests/ring_memory.h"
#include "props/machine/access.h"
#include "props/machine/fiber.h"
#include "props/machine/model.h"
#include "props/machine/play.h"

namespace kmes::props {

// Thrown to leave the core, because of a failure or the end of a run.
struct Stop {};

// The body of a fiber. Any other exception ends the program.
inline void until_stop(const std::function<void()>& body) {
    try {
        body();
    } catch (const Stop&) {
    }
}

// Buffer n is seen as this inode, plus n.
inline constexpr std::uint64_t kInodeOfFirst = 100;

// A buffer of the core, and its memory.
struct Ring {
    explicit Ring(std::uint64_t capacity_bytes)
        : memory(capacity_bytes), index(kmes_index_entries(capacity_bytes), {~0ull, ~0ull}) {}
    tests::RingMemory memory;
    std::vector<kmes_boundary> index;
    kmes_buffer buffer{};
    // The part that consumers can already see. After a poke the shared page may differ.
    std::uint64_t visible_tail = 0;
    std::uint64_t visible_write = 0;
    bool is_poked = false;  // so a consumer may read anything there (need_wake is never read)
};

// A flow of accesses: the producer, an interrupt of it, or a consumer.
struct Flow {
    Fiber* fiber = nullptr;      // nullptr: runs to its end
    std::uint64_t budget = 0;    // accesses before it pauses
    const char* next = nullptr;  // the label of the access before which it pauses
    // The last reported access: it has happened when the flow reports the next one.
    tests::RingMemory* written_memory = nullptr;
    const void* written = nullptr;
    std::uint64_t written_bytes = 0;
};

// A running operation of the producer.
struct Task {
    Operation operation;
    std::function<int(Model&, Plan&, bool is_nested)> model_call;
    std::function<int()> core_call;
    bool goes_on = false;          // continues a reservation: inside, and no interrupt
    bool changes_buffers = false;  // no consumer attaches meanwhile (E14)
    std::unique_ptr<Ring> new_ring;
    std::string type;  // memory of the emitted type
    std::string payload;
    // Filled while it runs.
    std::unique_ptr<Model> before;  // if a size in the ring is impossible
    Plan plan;
    std::vector<Step> taken;
    int expected = 0;
    int result = 0;
    bool is_nested = false;
    bool met_corrupt = false;
    unsigned sections = 0;                  // critical sections so far
    std::vector<const kmes_buffer*> wakes;  // if accesses are not reported
    std::uint64_t walked_bytes = 0;         // of sizes, read in the current section
};

enum class ConsumerState { fresh, running, asleep, blocked, idle };

class Machine;

struct Consumer {
    Machine* machine = nullptr;
    unsigned number = 0;
    Operation settings;
    std::unique_ptr<Fiber> fiber;
    Flow flow;
    kmes_platform platform{};
    kmes_reader reader{};
    std::vector<std::uint8_t> room;
    ConsumerState state = ConsumerState::fresh;
    bool is_opened = false;
    bool is_misled = false;  // it has seen a buffer that was poked or corrupt
    // A foreign store has cleared need_wake since this consumer set it, so a missing wake is
    // permitted (E12).
    bool is_request_erased = false;
    int last_error = 0;
    // Its sleep.
    bool is_woken = false, is_expired = false, is_interrupted = false;
    std::size_t sleeps_on = 0;
    std::uint64_t timeout_ns = 0;
    // The observations of the consumer.
    // Sequence number delivered last. Before the first one, it is that of the event before those
    // whose loss is counted, if it is known.
    std::uint64_t last = 0;
    bool is_last_known = false;
    std::uint64_t inode = 0;
    std::uint64_t left_at = 0;  // its position before its last access
    std::uint64_t delivered = 0, lost = 0, laps = 0, torn = 0, switches = 0, sleeps = 0;
    std::uint64_t attaches = 0, detaches = 0;
    std::uint64_t attached_inode = 0;  // of its last attach
    unsigned unsure_attaches = 0;      // in a row, in which identify named another buffer (E19)
    std::uint64_t accesses = 0;        // since its last delivery or sleep
    bool is_attaching = false;
    bool has_fenced_data = true, has_fenced_request = true;
    bool loaded_write_pos = false, loaded_generation = false;
    bool is_asking = false;  // it has set need_wake, and not cleared it
    std::uint64_t tail_at_recheck = 0;
};

class Machine {
  public:
    Machine(const Script& script, const PlayOptions& options);
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    PlayResult run();

  private:
    // -- machine.cc --
    static void hook(void* context, const struct kmes_order_access* access);
    static __u64 clock(void* context);
    static bool enter(void* context);
    static void exit(void* context);
    static void queue_wake(void* context, kmes_buffer* buffer);
    void on_access(const kmes_order_access& access);
    void remember_write(Flow& flow, const kmes_order_access& access);
    static void settle(Flow& flow);
    void resume(Flow& flow, Fiber& fiber, std::uint64_t budget);
    void perform(const Operation& operation);
    void perform_schedule(const Operation& operation);
    void perform_world(const Operation& operation);
    void skip() { result_.skipped++, was_skipped_ = true; }
    void end_script();
    void cancel();
    void sum_up();
    std::uint64_t producer_digest() const;
    [[noreturn]] void fail(const char* property, const char* clause, const std::string& message);
    void leave_if_failed() const {
        if (result_.failure) throw Stop{};
    }

    // -- operations.cc --
    void perform_producer(const Operation& operation);
    std::optional<Task> task_of(const Operation& operation);
    int emit_entry(const kmes_event_input& input);
    std::optional<Task> event_task(const Operation& operation);
    std::optional<Task> reservation_task(const Operation& operation);
    std::optional<Task> swap_task(const Operation& operation);
    void begin(Task& task);
    void run_core(Task& task);
    void end(Task& task);
    void count(const Task& task);
    void check_copied(const Task& task);
    void finish_started();
    std::unique_ptr<Ring> make_ring(std::uint64_t capacity_bytes, std::uint64_t generation,
                                    std::uint64_t position);
    bool shift_is_possible(const Operation& operation) const;
    ModelInput input_of(const Operation& operation) const;
    kmes_event_input core_input(const ModelInput& input);
    bool is_inside() const { return depth_ > 0; }

    // -- audit.cc --
    static const char* label_name(enum kmes_order_label label);
    void audit_kind(const kmes_order_access& access);
    void audit_producer(const kmes_order_access& access);
    void audit_walk(const kmes_order_access& access);
    void audit_data(const kmes_order_access& access);
    void audit_new_ring(const kmes_order_access& access);
    void take(Visible kind, const void* address);
    void take_all(Task& task);
    void meet_corrupt(Task& task);
    void check_successor(const Step& step);
    void check_visible(const kmes_order_access& access);
    void check_page(std::size_t ring, const char* property = "metadata",
                    const char* clause = "5.1.6, E13");
    void check_data(std::size_t ring, const char* property = "data",
                    const char* clause = "5.1.4, 5.1.7 step 7");
    void check_all();
    void check_counters();
    void check_nobody_sleeps_on_an_event();
    bool wakes_are_sure() const;

    // -- consumers.cc --
    void make_consumers();
    void start_fiber(Consumer& consumer);
    void stop_fiber(Consumer& consumer);
    void run_consumer(Consumer& consumer, std::uint64_t budget);
    void copy_wake_requests();
    void live(Consumer& consumer);
    void stand_idle(Consumer& consumer, int error);
    int open(Consumer& consumer);
    int drain(Consumer& consumer);
    int drain_copies(Consumer& consumer);
    int drain_in_place(Consumer& consumer);
    int drain_bulk(Consumer& consumer);
    int run_reader(Consumer& consumer);
    bool copy_in_place(Consumer& consumer, const kmes_event_view& view, std::string* bytes);
    void make_room(Consumer& consumer, std::uint64_t needed);
    void deliver(Consumer& consumer, const kmes_event_view& view, const std::uint8_t* bytes);
    void check_start(Consumer& consumer);
    void check_gap(Consumer& consumer, std::uint64_t sequence);
    void check_switch(Consumer& consumer);
    void check_reader(Consumer& consumer);
    void audit_consumer(Consumer& consumer, const kmes_order_access& access);
    void audit_consumer_position(Consumer& consumer, const kmes_order_access& access);
    void audit_consumer_order(Consumer& consumer, const kmes_order_access& access);
    void wait_for_buffers(Consumer& consumer);
    static int on_attach(void* context, __u16 cpu, kmes_mapping* mapping);
    static int on_identify(void* context, __u16 cpu, kmes_mapping* mapping);
    static void on_detach(void* context, kmes_mapping* mapping);
    static int on_sleep(void* context, __u32* word, __u32 expected, __u64 timeout_ns);
    static int on_event(void* context, const kmes_event_view* view);
    int fill_mapping(kmes_mapping* mapping);
    Consumer* consumer_of(std::uint64_t number);

    // -- state.cc --
    std::string state_text() const;
    std::string buffer_text(std::size_t ring) const;
    std::string consumer_text(const Consumer& consumer) const;

    std::size_t ring_index(const kmes_buffer* buffer) const;
    Ring* ring_containing(const void* address, std::size_t* index);

    const Script& script_;
    const PlayOptions& options_;
    const std::uint64_t accesses_for_bytes_;  // of each flow, at most, for the bytes of the script
    PlayResult result_;
    Operation settings_;
    Model model_;
    kmes_platform platform_{};
    kmes_cpu cpu_{};
    kmes_reservation reservation_{};
    kmes_batch batch_{};
    kmes_swap swap_{};
    std::vector<std::unique_ptr<Ring>> rings_;
    std::unique_ptr<Ring> prepared_ring_;
    std::uint64_t clock_ns_;
    std::uint64_t access_limit_ = 0;
    int depth_ = 0;  // open critical sections
    std::uint64_t refuse_ = 0, foreign_ = 0;
    std::string reserved_payload_;
    bool copy_has_more_ = false;
    std::size_t operation_index_ = 0;
    bool was_skipped_ = false;
    std::optional<int> returned_;

    Flow main_flow_, started_flow_;
    Flow* flow_ = &main_flow_;
    Consumer* consumer_ = nullptr;  // nullptr: a flow of the producer
    Task* task_ = nullptr;
    std::optional<Task> started_;
    std::unique_ptr<Fiber> started_fiber_;
    bool is_cancelling_ = false;
    std::vector<std::unique_ptr<Consumer>> consumers_;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_MACHINE_MACHINE_H_
