// SPDX-License-Identifier: MIT
//
// See resize.h. An operation is one byte for its kind, and one or two for its sizes. The first
// three bytes determine settings and readers.
#include "fuzz/targets/resize.h"

#include <algorithm>
#include <iterator>

#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/playing.h"
#include "props/script/script.h"

namespace kmes::fuzz {
namespace {

using props::Key;
using props::Operation;
using props::Verb;

constexpr std::size_t kMostOperations = 160;
constexpr std::uint64_t kPositions[] = {0, 1, 255, 0xfffffff0, (1ull << 63) - 77, 1ull << 40};

class Chain {
  public:
    explicit Chain(FuzzedBytes& bytes) : bytes_(bytes) {}

    props::Script decode() {
        head();
        while (!bytes_.empty() && script_.operations.size() < kMostOperations) one();
        return std::move(script_);
    }

  private:
    void add(const Operation& operation) { script_.operations.push_back(operation); }

    void head() {
        Operation settings(Verb::settings);
        const std::uint64_t drawn = bytes_.below(256);
        capacity_ = std::uint64_t{256} << drawn % 4;
        settings.set(Key::capacity, capacity_);
        settings.set(Key::phase, drawn >= 224);
        settings.set(Key::position, kPositions[drawn / 4 % std::size(kPositions)]);
        add(settings);
        const std::uint64_t readers = 1 + bytes_.below(256) % 2;
        const std::uint64_t forms = bytes_.below(256);
        for (std::uint64_t consumer = 0; consumer < readers; ++consumer) {
            Operation reader(Verb::reader);
            reader.set(Key::consumer, consumer);
            reader.set(Key::form, (forms >> 2 * consumer) % 4);
            reader.set(Key::sharing, readers > 1 || forms >= 192);
            reader.set(Key::spin, forms / 16 % 4);
            add(reader);
        }
        readers_ = readers;
    }

    Operation sized_swap(Verb verb) {
        const std::uint64_t drawn = bytes_.below(256);
        Operation swap(verb);
        capacity_ = std::uint64_t{256} << drawn % 5;
        swap.set(Key::capacity, capacity_);
        swap.set(Key::positions, drawn / 8 % 3);
        if (drawn / 8 % 3 == 2) swap.set(Key::shift, std::uint64_t{1} << drawn / 24 * 4);
        return swap;
    }

    // Sizes at the edges of the ring: the smallest, half of it, and the rest before the wrap.
    Operation event(Verb verb) {
        const std::uint64_t drawn = bytes_.below(256);
        Operation event(verb);
        std::uint64_t size = 30 + drawn % 32;
        if (drawn >= 96) size = capacity_ / 2 + 4 - drawn % 8;
        if (drawn >= 128) size = 30 + bytes_.below(capacity_ / 2);
        event.set(Key::payload, size - 30);
        event.set(Key::seed, drawn);
        if (drawn % 16 == 15) event.set(Key::style, 1);
        return event;
    }

    // One in four suitable operations is started, and pauses until another one comes.
    void maybe_started(Operation operation, std::uint64_t drawn) {
        operation.is_started = drawn >= 192;
        add(operation);
    }

    void one() {
        const std::uint64_t drawn = bytes_.below(256);
        const std::uint64_t consumer = drawn / 16 % readers_;
        switch (drawn % 16) {
            case 0:
            case 1:
            case 2: {
                const std::uint64_t times = drawn % 16 == 2 ? 1 + drawn / 16 : 1;
                const Operation emit = event(Verb::emit);
                for (std::uint64_t i = 1; i < times; ++i) add(emit);
                return maybe_started(emit, times == 1 ? drawn : 0);
            }
            case 3:
                return maybe_started(sized_swap(Verb::resize), drawn);
            case 4:
                return maybe_started(sized_swap(Verb::prepare), drawn);
            case 5:
                return maybe_started(Operation(Verb::copy), drawn);
            case 6:
                return maybe_started(Operation(Verb::change), drawn);
            case 7:
                return maybe_started(sized_swap(Verb::handover), drawn);
            case 8:
                return maybe_started(Operation(Verb::nudge).set(Key::buffer, drawn / 16), drawn);
            case 9:
                return add(Operation(Verb::attach)
                               .set(Key::refuse, drawn / 16 % 4)
                               .set(Key::foreign, drawn / 64));
            case 10:
                return add(Operation(Verb::advance).set(Key::count, 1 + bytes_.below(256)));
            case 11:
                return add(Operation(Verb::step)
                               .set(Key::consumer, consumer)
                               .set(Key::count, 1 + bytes_.below(256)));
            case 12:
                return add(Operation(Verb::run).set(Key::consumer, consumer));
            case 13:
                return batch(drawn);
            case 14:
                return rare(drawn, consumer);
            default:
                return add(Operation(Verb::finish));
        }
    }

    void batch(std::uint64_t drawn) {
        if (drawn / 16 < 4) return add(Operation(Verb::batch));
        if (drawn / 16 < 8) return add(Operation(Verb::end));
        add(event(Verb::add));
    }

    void rare(std::uint64_t drawn, std::uint64_t consumer) {
        constexpr Verb kVerbs[] = {Verb::restart, Verb::expire, Verb::interrupt};
        if (drawn / 32 < 3) return add(Operation(kVerbs[drawn / 32]).set(Key::consumer, consumer));
        if (drawn / 32 == 3) return add(Operation(Verb::retire));
        if (drawn / 32 == 4)
            return add(Operation(Verb::corrupt)
                           .set(Key::event, bytes_.below(16))
                           .set(Key::value, bytes_.below(256)));
        if (drawn / 32 == 5) return maybe_started(event(Verb::reserve), 0);
        add(Operation(drawn / 32 == 6 ? Verb::commit : Verb::abandon));
    }

    FuzzedBytes& bytes_;
    props::Script script_;
    std::uint64_t capacity_ = 256;
    std::uint64_t readers_ = 1;
};

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_resize(const std::uint8_t* data, std::size_t size) {
    kmes::fuzz::FuzzedBytes bytes(data, size);
    kmes::fuzz::play_or_abort(kmes::fuzz::Chain(bytes).decode());
    return 0;
}
