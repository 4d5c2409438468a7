// SPDX-License-Identifier: MIT
//
// Prints the labels of the core's accesses in the order of execution, for labels_test.py. Each path
// through an entry point is one line: `PATH SCENARIO: LABEL LABEL ...`. A label repeated in a row
// is printed once (data is copied word by word). Knows the core, and no model.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kmes/tests/test_reader.h"

namespace kmes::props {
namespace {

using tests::Reader;
using tests::ScopedHook;
using tests::World;

const char* name_of(enum kmes_order_label label) {
#define KMES_PROPS_NAME(name, access, field) #name,
    static const char* const names[] = {KMES_ORDER_LABELS(KMES_PROPS_NAME)};
#undef KMES_PROPS_NAME
    return names[label];
}

// A scenario that did not run as intended has not shown what it is named for.
void must(bool is_so, const char* what) {
    if (is_so) return;
    std::fprintf(stderr, "record_labels: not so: %s\n", what);
    std::exit(1);
}

// An action before the access with this label, once.
struct Before {
    enum kmes_order_label label = KMES_ORDER_LABEL_COUNT;
    std::function<void()> act;
};

// Two labels occur in attach.c and in consumer.c. An attach begins with the static fields; the next
// access tells how it ends.
class Recorder {
  public:
    void note(enum kmes_order_label label) {
        if (label == KMES_ORDER_STATIC_FIELD) in_attach_ = true;
        if (label == KMES_ORDER_LOAD_WRITE_POS) in_attach_ = false;
        const bool is_in_both =
            label == KMES_ORDER_LOAD_GENERATION || label == KMES_ORDER_LOAD_TAIL;
        std::string name = name_of(label);
        if (is_in_both && in_attach_) name = "attach.c/" + name;
        if (names_.empty() || names_.back() != name) names_.push_back(name);
    }

    void print() const {
        for (const std::string& name : names_) std::printf(" %s", name.c_str());
        std::printf("\n");
    }

  private:
    bool in_attach_ = false;
    std::vector<std::string> names_;
};

// Do not record accesses of the test's own actions.
bool is_aside = false;

void aside(const std::function<void()>& act) {
    is_aside = true;
    act();
    is_aside = false;
}

void record(const char* path, const char* scenario, const std::function<void()>& call,
            Before before = {}) {
    Recorder recorder;

    {
        ScopedHook hook([&](const kmes_order_access& access) {
            if (is_aside) return;
            recorder.note(access.label);
            if (access.label != before.label) return;
            before.label = KMES_ORDER_LABEL_COUNT;
            before.act();
        });
        call();
    }
    must(!before.act || before.label == KMES_ORDER_LABEL_COUNT, scenario);
    std::printf("%s %s:", path, scenario);
    recorder.print();
}

void fill(World& world, std::uint64_t event_bytes) {
    while (world.current().buffer.tail == 0)
        must(world.emit_sized(event_bytes) == 0, "the ring fills up");
}

void record_emit() {
    World world({});
    record("emit", "nobody-sleeps", [&] { must(world.emit_sized(40) == 0, "emitted"); });
    *world.current().buffer.shared.need_wake = 1;
    record("emit", "somebody-sleeps", [&] { must(world.emit_sized(40) == 0, "emitted"); });
    must(world.wakes.size() == 1, "a wake is queued");
    fill(world, 60);
    *world.current().buffer.shared.need_wake = 0;
    record("emit", "no-room", [&] { must(world.emit_sized(60) == 0, "emitted"); });

    World light({});
    light.cpu.has_light_fence = true;
    *light.current().buffer.shared.need_wake = 1;
    record("emit-with-light-fence", "somebody-sleeps",
           [&] { must(light.emit_sized(40) == 0, "emitted"); });

    World large({.capacity_bytes = 8192}); /* blocks of 512 bytes, so it walks over tiny events */
    fill(large, 30);
    record("emit", "no-room-walk", [&] { must(large.emit_sized(200) == 0, "emitted"); });
}

void record_batch() {
    World world({});
    auto emit_batch = [](World& world, unsigned events) {
        kmes_batch batch;
        kmes_batch_begin(&world.cpu, &batch);
        for (unsigned i = 0; i < events; i++) world.batch_emit_sized(batch, 60);
        kmes_batch_end(&world.cpu, &batch);
    };

    record("batch", "two-events", [&] { emit_batch(world, 2); });
    record("overfull-batch", "more-than-the-room", [&] { emit_batch(world, 9); });

    World light({});
    light.cpu.has_light_fence = true;
    record("batch-with-light-fence", "two-events", [&] { emit_batch(light, 2); });

    World asked({});
    *asked.current().buffer.shared.need_wake = 1;
    record("batch", "somebody-sleeps", [&] { emit_batch(asked, 2); });
}

void record_swap() {
    World world({});
    kmes_batch batch;
    auto swap_to = [&](tests::TestBuffer& made) {
        return [&] {
            must(kmes_swap_run(&world.cpu, &made.buffer, KMES_SWAP_KEEP, 0) == 0, "swapped");
        };
    };

    must(world.emit_sized(40) == 0, "emitted");
    record("swap", "nothing-pending", swap_to(world.make_buffer(512)));
    kmes_batch_begin(&world.cpu, &batch);
    world.batch_emit_sized(batch, 40);
    record("swap", "inside-a-batch", swap_to(world.make_buffer(256)));
    record("nudge", "retired",
           [&] { must(kmes_buffer_nudge(&world.cpu, &world.first().buffer) == 0, "nudged"); });
}

void record_open() {
    World world({});
    Reader quiet(world), swapped(world);

    record("open", "quiet", [&] { must(quiet.open() == 0, "opened"); });
    record("open", "swapped-meanwhile", [&] { must(swapped.open() == 0, "opened"); },
           {KMES_ORDER_LOAD_GENERATION, [&] { must(world.swap(256) == 0, "swapped"); }});
    must(world.attaches == 3, "attached again");
}

void record_next() {
    World world({});
    Reader reader(world);
    auto finds = [&](int expected) {
        return [&, expected] { must(reader.next() == expected, "next"); };
    };

    must(reader.open() == 0, "opened");
    record("next", "nothing", finds(KMES_READ_EMPTY));
    must(world.emit_sized(60) == 0, "emitted");
    record("next", "an-event", finds(KMES_READ_EVENT));
    fill(world, 60);
    must(world.emit_sized(60) == 0, "emitted");
    record("next", "lapped", finds(KMES_READ_EVENT));
    must(reader.reader.statistics.laps == 1, "lapped");
    record("next", "torn", finds(KMES_READ_EVENT), {KMES_ORDER_DATA_FENCE, [&] {
                                                        for (int i = 0; i < 4; i++)
                                                            world.emit_sized(60);
                                                    }});
    must(reader.reader.statistics.torn == 1, "torn");
}

void record_wait() {
    World world({});
    Reader alone(world), sharer(world);
    auto wait = [&](Reader& reader) {
        return [&] { kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT); };
    };
    const std::function<void()> emit = [&] { must(world.emit_sized(40) == 0, "emitted"); };
    const std::function<void()> swap = [&] { must(world.swap(256) == 0, "swapped"); };

    sharer.config.sharing = KMES_SHARED;
    must(alone.open() == 0 && sharer.open() == 0, "opened");
    record("wait", "sleeps", wait(alone));
    record("wait", "sleeps-shared", wait(sharer));
    must(alone.reader.statistics.sleeps + sharer.reader.statistics.sleeps == 2, "slept");
    sharer.reader.mapping.needs_barrier = true;
    record("wait-with-barrier", "sleeps", wait(sharer));
    must(sharer.reader.statistics.sleeps == 2, "slept");
    record("wait", "finds-an-event", wait(alone), {KMES_ORDER_SLEEP_FENCE, emit});
    must(alone.next() == KMES_READ_EVENT, "next");
    record("wait", "finds-a-swap", wait(alone), {KMES_ORDER_SLEEP_FENCE, swap});
    must(alone.reader.statistics.sleeps == 1, "did not sleep");
}

// The whole loop: `act` happens during its sleep, or before an access. It ends with the second
// event.
void record_run() {
    World world({});
    Reader reader(world);
    int delivered = 0;
    auto run = [&] {
        kmes_reader_run(
            &reader.reader, reader.room, sizeof(reader.room),
            [](void* context, const kmes_event_view*) {
                return ++*static_cast<int*>(context) % 2 ? 0 : 1;
            },
            &delivered);
    };

    must(reader.open() == 0, "opened");
    must(world.emit_sized(40) == 0, "emitted");
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) {
        aside([&] { must(world.emit_sized(40) == 0, "emitted"); });
        return 0;
    };
    record("run", "event-sleep-event", run);
    must(delivered == 2 && reader.reader.statistics.sleeps == 1, "slept between two events");

    must(world.emit_sized(40) == 0, "emitted");
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) {
        aside([&] {
            must(world.swap(256) == 0, "swapped");
            must(world.emit_sized(40) == 0, "emitted");
        });
        return 0;
    };
    record("run", "event-sleep-swap-event", run);
    must(delivered == 4 && reader.reader.statistics.switches == 1, "switched between two events");

    must(world.emit_sized(40) == 0, "emitted");
    record("run", "event-before-the-swap-is-seen", run, {KMES_ORDER_LOAD_GENERATION, [&] {
                                                             must(world.emit_sized(40) == 0,
                                                                  "emitted");
                                                             must(world.swap(256) == 0, "swapped");
                                                         }});
    must(delivered == 6 && reader.reader.statistics.switches == 1, "drained before it switches");

    world.on_attach = [&](kmes_mapping* mapping) {
        world.describe_current(mapping);
        mapping->needs_barrier = true;
        return 0;
    };
    must(world.emit_sized(40) == 0, "emitted");
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) {
        aside([&] { must(world.emit_sized(40) == 0, "emitted"); });
        return 0;
    };
    record("run-with-barrier", "event-sleep-event", run);
    must(delivered == 8, "slept between two events");
}

}  // namespace
}  // namespace kmes::props

int main() {
    kmes::props::record_emit();
    kmes::props::record_batch();
    kmes::props::record_swap();
    kmes::props::record_open();
    kmes::props::record_next();
    kmes::props::record_wait();
    kmes::props::record_run();
    return 0;
}
