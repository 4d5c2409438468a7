// SPDX-License-Identifier: MIT
//
// A plain model of one CPU's producer: deques of events, and two arrays of bytes for each buffer.
// Written from section 5.1, the event model and the errata. Knows nothing of the core. It includes
// no header of kmes/ and repeats every constant, so that a mistake there cannot hide itself here.
//
// Each operation computes its result, and the plan: the visible steps that lead there, in the order
// of the specification. The operations themselves do not touch the metadata page. The caller takes
// the steps of the plan one by one (apply), because consumers may act in between.
#ifndef KMES_PROPS_MACHINE_MODEL_H_
#define KMES_PROPS_MACHINE_MODEL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "props/script/form.h"

namespace kmes::props {

inline constexpr int kErrorBusy = -16;
inline constexpr int kErrorInvalid = -22;
inline constexpr int kErrorNoSpace = -28;

// One visible step of an operation.
enum class Visible : std::uint8_t {
    tail,            // tail_pos is stored (5.1.7 step 6)
    tail_fence,      // E5: before the given-up bytes are overwritten
    data,            // bytes of [position, position + value) are stored, any number of times
    publish,         // write_pos is stored (5.1.7 step 8)
    wake_fence,      // E1
    load_need_wake,  // need_wake is loaded (5.1.7 step 9)
    counter,         // futex_counter is stored, because of need_wake
    wake,            // every sleeper on the buffer is woken
    successor,       // data, generation, tail_pos and write_pos of a new buffer, still invisible
    generation,      // of a retired buffer (E24)
    retire_counter,  // its futex_counter, whatever need_wake is (E3)
};
const char* text_of(Visible step);
// The property that breaks if this step is missing or misplaced, and its clause.
const char* property_of(Visible step);
const char* clause_of(Visible step);

struct Step {
    Visible kind;
    std::size_t buffer = 0;
    std::uint64_t position = 0;  // data; publish: the newest sequence number that becomes visible
    std::uint64_t value = 0;     // the stored value; data: bytes
};
using Plan = std::deque<Step>;

struct ModelEvent {
    std::uint64_t sequence;
    std::uint64_t position;
    std::uint64_t bytes;
    bool is_corrupt = false;  // its size in the ring is impossible (E13)
    std::uint64_t end() const { return position + bytes; }
};

struct ModelBuffer {
    std::uint64_t capacity = 0;
    std::uint64_t tail = 0;
    std::uint64_t published = 0;
    std::uint64_t frontier = 0;  // published, plus what a batch has written after it
    std::uint64_t generation = 0;
    std::uint32_t counter = 0;
    std::deque<ModelEvent> events;  // from tail to frontier
    std::string page;               // the metadata, as it must be now
    std::string data;               // `capacity` bytes, as they must be after the operation
    bool is_boot = false;
    bool is_retired = false;

    std::string content(std::uint64_t position, std::uint64_t bytes) const;
    void write(std::uint64_t position, std::string_view bytes);
};

// The history of a sequence number.
struct ModelRecord {
    std::shared_ptr<const std::string> bytes;  // nullptr: used without an event
    bool is_published = false;                 // by a taken step of a plan
};

struct ModelCounters {
    std::uint64_t events = 0, bytes = 0, dropped = 0, dropped_nested = 0, overwritten = 0;
    std::uint64_t wakes = 0, corrupt = 0, swaps = 0, left_behind = 0;
    bool operator==(const ModelCounters&) const = default;
};

struct ModelInput {
    std::string type;
    std::uint64_t payload_bytes = 0;
    std::uint64_t seed = 0;
    std::uint8_t origin = 0;
    std::uint64_t extra_bytes = 0;
    std::uint64_t header_bytes() const { return kFixedBytes + type.size() + extra_bytes; }
    std::uint64_t bytes() const { return header_bytes() + payload_bytes; }
};

enum class ModelStyle { kernel, call };
enum class ModelPositions { keep, zero, shift };

struct ModelSettings {
    std::uint64_t capacity = 4096;
    std::uint64_t position = 0;
    std::uint64_t sequence = 0;  // the last assigned number
    std::uint64_t clock_ns = 0;
    std::uint16_t cpu = 0;
    bool is_boot = false;
};

class Model {
  public:
    explicit Model(const ModelSettings& settings);

    // Each operation returns its result, and adds its steps to `plan`. `is_inside`: it is an
    // interrupt inside of another critical section (E16).
    int emit(const ModelInput& input, ModelStyle style, bool is_inside, Plan& plan);
    void batch();
    int add(const ModelInput& input, ModelStyle style, bool is_inside, Plan& plan);
    void end(bool is_inside, Plan& plan);
    int reserve(const ModelInput& input, bool is_inside, Plan& plan);
    void fill(std::uint64_t offset, std::uint64_t bytes, Plan& plan);
    void commit(Plan& plan);
    void abandon(Plan& plan);
    int prepare(std::uint64_t capacity, ModelPositions positions, std::uint64_t shift,
                bool is_inside, Plan& plan);
    int copy(bool is_inside, Plan& plan);
    int change(bool is_inside, Plan& plan);
    int nudge(std::size_t buffer, bool is_inside, Plan& plan);
    int retire(bool is_inside, Plan& plan);
    void jump(std::uint64_t forward_ns, std::uint64_t back_ns);
    bool corrupt(std::size_t event,
                 std::uint32_t event_bytes);  // false: no such event, or a possible size

    // Takes a step: stores its values in the metadata page. `need_wake`: for load_need_wake; if it
    // is not zero, the wake is put at the front of the plan.
    void apply(const Step& step, std::uint8_t need_wake, Plan& plan);

    // Takes over the interrupts of `other`, when an operation is computed again.
    void take_over(const Model& other);

    ModelBuffer& now() { return buffers[current]; }
    const ModelBuffer& now() const { return buffers[current]; }
    const ModelRecord* record(std::uint64_t number) const;

    std::vector<ModelBuffer> buffers;  // the successor of a swap is added when it is finished
    std::size_t current = 0;
    std::uint64_t first_sequence;
    std::uint64_t sequence;
    std::uint64_t clock_ns;
    ModelCounters counters;
    std::uint64_t missed = 0;  // nested emissions whose numbers are not used yet (E16)
    bool has_batch = false;
    bool has_reservation = false;
    bool has_prepared = false;
    bool wake_is_owed = false;  // published under E8; need_wake is loaded later
    bool is_over = false;
    // The next operation reads an impossible size (E13). The producer chooses which sizes it reads,
    // so the caller must tell the model.
    bool meets_corrupt = false;
    // If something was emitted after a swap was prepared, bytes outside of the survivors may have
    // been copied. They are not compared.
    bool successor_is_exact = true;

  private:
    struct Reservation {
        ModelInput input;
        std::uint64_t sequence;
    };
    struct Prepared {
        std::uint64_t capacity;
        std::uint64_t delta;
    };

    ModelBuffer fresh_buffer(std::uint64_t capacity, std::uint64_t position,
                             std::uint64_t generation) const;
    std::uint64_t take_time();
    void settle();
    int admit(const ModelInput& input, ModelStyle style);
    void make_room(std::uint64_t bytes, Plan& plan);
    void move_tail(std::uint64_t position, Plan& plan);
    void empty(Plan& plan);
    std::string header(const ModelInput& input, std::uint64_t timestamp,
                       std::uint64_t number) const;
    void write_event(const ModelInput& input, std::uint64_t timestamp, Plan& plan);
    void append(std::uint64_t number, std::uint64_t bytes);
    void publish(Plan& plan);
    void publish_pending(Plan& plan);
    void load_need_wake(Plan& plan);
    void give_up(std::size_t buffer, Plan& plan);
    std::size_t first_survivor(std::uint64_t capacity) const;
    void remember(std::uint64_t number, std::shared_ptr<const std::string> bytes);

    std::uint16_t cpu_;
    std::uint64_t batch_time_ = 0;
    std::optional<Reservation> reservation_;
    std::optional<Prepared> prepared_;
    std::vector<ModelRecord> records_;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_MACHINE_MODEL_H_
