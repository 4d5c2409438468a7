// SPDX-License-Identifier: MIT
//
// Values and phrases (drawing.h). The clause of an edge is named where it is drawn.
#include "props/script/drawing.h"

#include <algorithm>
#include <array>

#include "props/script/form.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kBlock = 4096;  // of the producer's index of boundaries (E13)

// Offsets in the metadata (5.1.6) that producer or consumer reads, besides need_wake.
constexpr std::array<std::uint64_t, 9> kFields = {0, 8, 12, 16, 24, 32, 64, 72, 128};

std::uint64_t draw_position(Random& random) {
    const std::uint64_t highest = rule_of(Verb::settings, Key::position)->maximum;
    std::uint64_t block = 0;
    switch (random.below(8)) {
        case 0:
        case 1:
            return 0;
        case 2:  // just below 2^32
            return (1ull << 32) - random.below(600);
        case 3:  // and below the sign bit
            return (1ull << 63) - random.below(600);
        case 4:
            return highest - random.below(600);
        case 5:
            // Two draws must not be in one expression: compilers would evaluate them in different
            // orders.
            block = kBlock * random.between(1, 9);
            return block - random.below(64);
        case 6:
            return random.below(1 << 20);
        default:
            return random.below(highest);
    }
}

std::uint64_t draw_small_capacity(Random& random) {
    static constexpr std::array<unsigned, 9> weights = {34, 20, 14, 6, 14, 4, 4, 2, 2};
    return 256ull << random.weighted(weights);
}

}  // namespace

Operation draw_settings(Random& random, Profile profile) {
    Operation settings(Verb::settings);
    settings.set(Key::capacity, draw_small_capacity(random));
    settings.set(Key::position, draw_position(random));
    if (random.chance(20)) settings.set(Key::sequence, (1ull << 32) - random.below(40));
    if (random.chance(5)) settings.set(Key::sequence, (1ull << 63) - random.below(2));
    if (random.chance(5)) settings.set(Key::clock, (1ull << 63) - random.below(40));
    if (random.chance(10)) settings.set(Key::cpu, random.chance(50) ? 65535 : random.below(300));
    if (random.chance(profile == Profile::resizes ? 25 : 12)) settings.set(Key::phase, 1);
    if (random.chance(30)) settings.set(Key::guard, 1);
    return settings;
}

std::vector<Operation> draw_readers(Random& random, Profile profile, std::uint64_t capacity) {
    const bool many = random.chance(profile == Profile::readers ? 70 : 30);
    if (!many && random.chance(30)) return {};
    const std::uint64_t count = many ? random.between(2, kMaxConsumers) : 1;
    std::vector<Operation> readers;
    for (std::uint64_t i = 0; i < count; i++) {
        Operation& reader = readers.emplace_back(Verb::reader);
        reader.set(Key::consumer, i).set(Key::form, random.below(4)).set(Key::sharing, many);
        if (random.chance(25)) reader.set(Key::spin, random.between(1, 3));
        // Usually room for everything in the ring; sometimes for less than its largest event.
        reader.set(Key::room, std::clamp<std::uint64_t>(capacity, 4096, 1 << 20));
        if (random.chance(15)) reader.set(Key::room, random.between(64, 600));
        if (random.chance(15)) reader.set(Key::stop, 1);
    }
    return readers;
}

std::uint64_t draw_value(Random& random, const KeyRule& rule) {
    if (rule.key == Key::capacity) return draw_small_capacity(random);
    if (rule.key == Key::position) return draw_position(random);
    std::uint64_t value = 0;
    switch (random.below(6)) {
        case 0:
            return rule.minimum;
        case 1:
            return random.chance(50) ? rule.maximum : rule.standard;
        case 2:
            value = 1ull << random.below(64);
            value += random.below(3) - 1;
            break;
        case 3:
            value = random.next();
            break;
        default:  // most meaningful values are small
            value = rule.minimum + random.below(20);
            break;
    }
    if (value >= rule.minimum && value <= rule.maximum) return value;
    return random.between(rule.minimum, rule.maximum);
}

std::uint64_t draw_event_bytes(Random& random, const Outline& outline) {
    const std::uint64_t half = outline.half();
    const std::uint64_t front =
        outline.events().empty() ? kSmallestEvent : outline.events().front();
    std::uint64_t bytes = 0;
    switch (random.below(12)) {
        case 0:
        case 1:
            bytes = kSmallestEvent + (random.chance(50) ? 0 : random.below(20));
            break;
        case 2:  // 5.1.7 step 5: exactly 50 % is kept, one byte more is dropped
            return half + random.below(3) - 1;
        case 3:  // exact fill, and one byte more or less
        case 4:
            bytes = outline.room() + random.below(3) - 1;
            break;
        case 5:  // step 6: frees exactly one event; with one byte more, two
        case 6:
            bytes = outline.room() + front + random.below(3) - 1;
            break;
        case 7: {  // frees the oldest few
            bytes = outline.room();
            const std::uint64_t few = random.between(1, 4);
            for (std::uint64_t i = 0; i < few && i < outline.events().size(); i++) {
                bytes += outline.events()[i];
            }
            break;
        }
        case 8:  // 5.1.4: ends at the wrap, or leaves less than a header before it
        case 9:
            bytes =
                outline.until_wrap() + 1 - random.below(random.chance(50) ? 3 : kFixedBytes + 5);
            break;
        case 10:
            bytes = kBlock - outline.write() % kBlock + random.below(3) - 1;
            break;
        default:
            bytes = random.between(kSmallestEvent, half);
            break;
    }
    // An event that is too large becomes several smaller ones, or is sometimes dropped.
    if (bytes > half && !random.chance(8)) bytes = random.chance(50) ? half : bytes / 3;
    return bytes < kSmallestEvent || bytes > 2 * outline.capacity() ? kSmallestEvent : bytes;
}

Drawing::Drawing(Random& random, Profile profile, const Script& script)
    : random_(random), profile_(profile), outline_(script) {
    for (const Operation& reader : script.readers()) consumers_.push_back(reader[Key::consumer]);
    consumer_ = random_.pick(consumers_);
    for (const Operation& operation : script.operations) outline_.follow(operation);
}

void Drawing::line(Operation operation) {
    outline_.follow(operation);
    lines_.push_back(std::move(operation));
}

void Drawing::aim(Operation& event) {
    const std::uint64_t header = event_bytes(event) - event[Key::payload];
    const std::uint64_t bytes = draw_event_bytes(random_, outline_);
    event.set(Key::payload, bytes > header ? bytes - header : 0);
}

Operation Drawing::event(Verb verb) {
    Operation event(verb);
    event.set(Key::seed, random_.chance(80) ? random_.below(1000) : random_.next());
    if (random_.chance(20)) event.set(Key::origin, random_.below(5));
    if (random_.chance(20))
        event.type = random_.pick<std::string>({"a.b", "\xC3\xA9", "\xFF", "xyz"});
    if (random_.chance(1)) event.type = "";
    if (random_.chance(8))
        event.set(Key::type_len,
                  random_.between(1, std::min<std::uint64_t>(outline_.half(), 65535)));
    if (random_.chance(6)) event.set(Key::extra, random_.between(1, 40));
    if (verb != Verb::reserve && random_.chance(25)) event.set(Key::style, 1);
    aim(event);
    if (random_.below(400) == 0) event.set(Key::payload, ~0u - random_.below(64));
    return event;
}

Operation Drawing::of_buffer(Verb verb, std::uint64_t buffer) {
    return Operation(verb).set(Key::buffer, std::min(buffer, rule_of(verb, Key::buffer)->maximum));
}

Operation Drawing::of_consumer(Verb verb) {
    if (random_.chance(20)) consumer_ = random_.pick(consumers_);
    return Operation(verb).set(Key::consumer, consumer_);
}

// -- Events ---------------------------------------------------------------------------------------

void Drawing::tiny(std::uint64_t most) {
    // E23: if the ring is small, enough events for a lap are many sizes to walk.
    const std::uint64_t lap = outline_.capacity() / kSmallestEvent + 1;
    const std::uint64_t count = random_.between(2, std::min(most, lap));
    for (std::uint64_t i = 0; i < count; i++) {
        line(Operation(Verb::emit).set(Key::payload, random_.chance(80) ? 0 : random_.below(3)));
    }
}

// A long run of small events after a large one, and then a large one over them.
void Drawing::tiny_run() {
    Operation large(Verb::emit);
    const std::uint64_t half = outline_.half();
    large.set(Key::payload, half - kSmallestEvent - random_.below(half / 4));
    line(large);
    tiny(24);
    if (random_.chance(70)) line(random_.chance(60) ? large : event(Verb::emit));
}

// E8: often more events than the ring can contain.
void Drawing::batch() {
    line(Operation(Verb::batch));
    const std::uint64_t count = random_.between(0, 8);
    for (std::uint64_t i = 0; i < count; i++) {
        line(event(Verb::add));
        if (random_.chance(30)) in_between();
        // E16: an interrupt between two events of the batch publishes the pending ones.
        if (random_.chance(15)) emit();
        if (random_.chance(4)) reservation();
        if (random_.chance(4)) resize();
    }
    if (random_.chance(95)) line(Operation(Verb::end));
}

void Drawing::reservation() {
    const Operation reserve = event(Verb::reserve);
    line(reserve);
    if (random_.chance(40)) in_between();
    const std::uint64_t bytes = reserve[Key::payload];
    const std::uint64_t cut = random_.between(0, std::min<std::uint64_t>(bytes, 100000));
    line(Operation(Verb::fill).set(Key::bytes, random_.chance(50) ? ~0u : cut));
    if (random_.chance(40)) in_between();
    if (random_.chance(60)) line(Operation(Verb::fill).set(Key::offset, cut));
    if (random_.chance(10)) {
        line(Operation(Verb::fill).set(Key::offset, bytes + random_.below(3)).set(Key::bytes, 9));
    }
    if (random_.chance(30)) in_between();
    line(Operation(random_.chance(80) ? Verb::commit : Verb::abandon));
}

// -- Swaps ----------------------------------------------------------------------------------------

std::uint64_t Drawing::draw_capacity() {
    const std::uint64_t now = outline_.capacity();
    std::uint64_t to = now;
    switch (random_.below(6)) {
        case 0:
            to = now * 2;
            break;
        case 1:
        case 2:
            to = now / 2;
            break;
        case 3:
            to = now / 4;
            break;
        case 4:
            to = draw_small_capacity(random_);
            break;
        default:
            break;
    }
    return std::clamp<std::uint64_t>(to, 256, kMaxDrawnCapacity);
}

Operation Drawing::swap_to(Verb verb) {
    Operation swap(verb);
    swap.set(Key::capacity, draw_capacity());
    if (random_.chance(45)) swap.set(Key::positions, random_.between(1, 2));
    if (swap[Key::positions] == 2) {
        const std::vector<std::uint64_t> shifts = {
            1,          kSmallestEvent - 1,       kBlock, outline_.capacity(), 1ull << 32,
            1ull << 40, random_.below(1ull << 40)};
        swap.set(Key::shift, random_.pick(shifts));
    }
    return swap;
}

void Drawing::resize() {
    line(swap_to(Verb::resize));
    if (random_.chance(30) && outline_.buffers() > 1) {
        line(of_buffer(Verb::nudge, outline_.buffers() - 2));
    }
}

// E18: emission continues while the survivors are copied.
void Drawing::pieces() {
    line(swap_to(Verb::prepare));
    const std::uint64_t rounds = random_.between(0, 4);
    for (std::uint64_t i = 0; i < rounds; i++) {
        if (random_.chance(60)) line(Operation(Verb::copy));
        if (random_.chance(50)) emit();
        if (random_.chance(15)) tiny(12);
        if (random_.chance(10)) batch();
        if (random_.chance(25)) in_between();
    }
    if (random_.chance(92)) line(Operation(Verb::change));
}

// E10, E20: an event that takes more than half of a shrunken ring, up to all of it.
void Drawing::large_then_shrink() {
    const std::uint64_t half = outline_.half();
    const std::uint64_t least = std::max(half / 2, kSmallestEvent);
    const std::uint64_t bytes = random_.chance(50) ? half : random_.between(least, half);
    line(Operation(Verb::emit).set(Key::payload, bytes - kSmallestEvent));
    if (random_.chance(30)) burst();
    Operation swap = swap_to(Verb::resize);
    swap.set(Key::capacity, std::max<std::uint64_t>(256, random_.chance(70) ? half : half / 2));
    line(swap);
    if (random_.chance(50)) in_between();
    if (random_.chance(50)) tiny(8);
    emit();
    if (random_.chance(40)) batch();
}

void Drawing::handover() {
    if (!outline_.is_boot()) return resize();
    line(swap_to(Verb::handover));
}

// -- Schedules ------------------------------------------------------------------------------------

void Drawing::burst() {
    static const std::vector<std::uint64_t> counts = {1, 1, 1, 2, 2, 3, 4, 5, 8, 13, 30};
    const std::uint64_t lines = random_.between(1, 3);
    for (std::uint64_t i = 0; i < lines; i++) {
        if (random_.chance(12)) {
            line(of_consumer(Verb::run));
        } else {
            line(of_consumer(Verb::step).set(Key::count, random_.pick(counts)));
        }
    }
}

// The interrupts of a started operation or a reservation (E16).
void Drawing::interrupt() {
    switch (random_.below(8)) {
        case 0:
            return line(swap_to(random_.chance(50) ? Verb::resize : Verb::prepare));
        case 1:
            return line(of_buffer(Verb::nudge, random_.below(outline_.buffers())));
        case 2:
            return line(event(random_.chance(50) ? Verb::reserve : Verb::add));
        case 3:
            return line(Operation(random_.chance(50) ? Verb::change : Verb::end));
        default:
            return emit();
    }
}

void Drawing::in_between() {
    static constexpr std::array<unsigned, kProfileCount> pokes = {6, 6, 40, 3, 6, 6};
    if (random_.chance(pokes[static_cast<std::size_t>(profile_)])) poke();
    if (random_.chance(70)) burst();
    if (random_.chance(20)) interrupt();
    if (random_.chance(4)) jump();
}

Operation Drawing::startable() {
    switch (random_.below(10)) {
        case 0:
            return swap_to(outline_.is_boot() ? Verb::handover : Verb::resize);
        case 1:
            return outline_.has_prepared() ? Operation(Verb::change) : swap_to(Verb::prepare);
        case 2:
            return outline_.has_batch() ? Operation(Verb::end) : event(Verb::reserve);
        case 3:
            return of_buffer(Verb::nudge, random_.below(outline_.buffers()));
        default:
            return event(outline_.has_batch() ? Verb::add : Verb::emit);
    }
}

// One operation that pauses between its accesses while others run.
void Drawing::started() {
    Operation operation = startable();
    operation.is_started = true;
    line(operation);
    const std::uint64_t rounds = random_.between(1, 6);
    for (std::uint64_t i = 0; i < rounds; i++) {
        if (random_.chance(70)) {
            line(Operation(Verb::advance).set(Key::count, random_.between(1, 4)));
        }
        in_between();
    }
    if (random_.chance(75)) line(Operation(Verb::finish));
    if (operation.verb == Verb::reserve && random_.chance(80)) {
        line(Operation(Verb::fill));
        line(Operation(Verb::commit));
    }
}

void Drawing::reading() {
    if (random_.chance(50)) consumer_ = random_.pick(consumers_);
    burst();
    switch (random_.below(8)) {
        case 0:
            return line(of_consumer(Verb::restart));
        case 1:
            return line(of_consumer(Verb::expire));
        case 2:
            return line(of_consumer(Verb::interrupt));
        default:
            return line(of_consumer(Verb::run));
    }
}

// E1 to E3: a consumer pauses between its last check and its sleep, and an event arrives.
void Drawing::sleeping() {
    const std::uint64_t who = consumer_;
    const auto of_who = [who](Verb verb) { return Operation(verb).set(Key::consumer, who); };
    line(of_who(Verb::run));
    line(random_.chance(50) ? Operation(Verb::emit) : of_who(Verb::expire));
    line(of_who(Verb::step).set(Key::count, random_.between(1, 24)));
    Operation operation = startable();
    operation.is_started = random_.chance(80);
    line(operation);
    if (operation.is_started) {
        line(Operation(Verb::advance).set(Key::count, random_.between(1, 8)));
        line(of_who(Verb::step).set(Key::count, random_.between(1, 6)));
        if (random_.chance(30)) in_between();
        line(Operation(Verb::finish));
    }
    if (random_.chance(70)) line(of_who(Verb::run));
}

// -- The world ------------------------------------------------------------------------------------

void Drawing::jump() {
    Operation jump(Verb::jump);
    const std::uint64_t by = random_.chance(70) ? random_.below(2000000000) : 1ull << 62;
    line(jump.set(random_.chance(50) ? Key::forward : Key::back, by));
}

void Drawing::poke() {
    static const std::vector<std::uint64_t> values = {0, 1, 1, 2, 127, 128, 255};
    const std::uint64_t buffers = outline_.buffers();
    Operation poke =
        of_buffer(Verb::poke, random_.chance(80) ? buffers - 1 : random_.below(buffers + 1));
    std::uint64_t offset = kNeedWakeAt;
    if (random_.chance(50)) {
        offset = kFields[random_.below(kFields.size())];
        offset += random_.below(8);
    }
    if (random_.chance(8)) offset = random_.below(kMetadataBytes);
    poke.set(Key::offset, offset);
    line(poke.set(Key::value, random_.chance(80) ? random_.pick(values) : random_.below(256)));
}

void Drawing::corrupt() {
    const std::vector<std::uint64_t> values = {
        0, 1, kSmallestEvent - 1, outline_.used() + 1, ~0u, random_.below(~0u)};
    Operation corrupt(Verb::corrupt);
    const std::uint64_t events = outline_.events().size();
    corrupt.set(Key::event, random_.chance(60) ? random_.below(3) : random_.below(events + 1));
    line(corrupt.set(Key::value, random_.pick(values)));
    if (random_.chance(70)) tiny_run();
}

void Drawing::attach() {
    Operation attach(Verb::attach);
    if (random_.chance(60)) attach.set(Key::refuse, random_.between(1, 3));
    if (random_.chance(60)) attach.set(Key::foreign, random_.between(1, 3));
    line(attach);
    line(random_.chance(60) ? swap_to(Verb::resize) : of_consumer(Verb::restart));
    burst();
}

// Little is left to do after it, so it is rare.
void Drawing::retire() {
    if (!random_.chance(20)) return emit();
    line(Operation(Verb::retire));
    reading();
    if (random_.chance(50)) line(Operation(Verb::retire));
}

void Drawing::world() {
    switch (random_.below(4)) {
        case 0:
            return jump();
        case 1:
            return line(of_buffer(Verb::nudge, random_.below(outline_.buffers() + 1)));
        default:
            return poke();
    }
}

void Drawing::phrase() {
    using Phrase = void (Drawing::*)();
    static constexpr std::array<Phrase, 15> phrases = {
        &Drawing::emit,
        &Drawing::tiny_run,
        &Drawing::batch,
        &Drawing::reservation,
        &Drawing::resize,
        &Drawing::pieces,
        &Drawing::large_then_shrink,
        &Drawing::started,
        &Drawing::reading,
        &Drawing::sleeping,
        &Drawing::handover,
        &Drawing::world,
        &Drawing::corrupt,
        &Drawing::attach,
        &Drawing::retire,
    };
    // The weights, in the order above.
    static constexpr std::array<std::array<unsigned, 15>, kProfileCount> weights = {{
        {30, 6, 10, 8, 6, 6, 4, 12, 16, 6, 4, 6, 1, 2, 1},   // anything
        {20, 6, 5, 3, 20, 16, 14, 8, 10, 3, 6, 2, 1, 3, 1},  // resizes
        {24, 4, 8, 6, 4, 4, 3, 16, 8, 4, 2, 30, 4, 1, 1},    // hostile
        {12, 2, 5, 4, 4, 4, 4, 36, 14, 24, 3, 2, 0, 2, 1},   // schedules
        {12, 4, 40, 8, 3, 3, 6, 8, 10, 3, 2, 3, 1, 1, 1},    // batches
        {20, 5, 6, 3, 6, 3, 6, 10, 30, 12, 2, 3, 1, 10, 1},  // readers
    }};
    // The boot phase ends at some time.
    if (outline_.is_boot() && random_.chance(8)) return handover();
    const std::size_t which = random_.weighted(weights[static_cast<std::size_t>(profile_)]);
    (this->*phrases[which])();
}

}  // namespace kmes::props
