// SPDX-License-Identifier: MIT
//
// The actions of one run, drawn from a seed. See mix.h.
#include "props/threads/mix.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t k64KiB = 64 << 10;
constexpr std::uint64_t k4MiB = 4 << 20;

void draw_producer(Draw& draw, Mix* mix) {
    mix->cpus = 1 + static_cast<unsigned>(draw.below(2));
    mix->is_single = draw.one_in(4);
    mix->emitters = mix->is_single ? 1 : 1 + static_cast<unsigned>(draw.below(3));
    mix->has_boot_phase = draw.one_in(2);
    mix->capacity_bytes = k64KiB << draw.below(3);
    mix->positions = static_cast<enum kmes_swap_positions>(draw.below(3));
    mix->sizes = static_cast<Sizes>(draw.below(3));
    mix->rounds = 1 + static_cast<unsigned>(draw.below(6));
    mix->round_events = static_cast<unsigned>(draw.below(1u << draw.below(10)));
    mix->resizes = draw.one_in(2) ? static_cast<unsigned>(draw.below(4)) : 0;
    mix->nudges = draw.one_in(2);
    mix->nudges_in_background = !mix->is_single && draw.one_in(4);
    mix->ends_by_retire = draw.one_in(3);
    mix->is_lossless = draw.one_in(4);
    if (mix->is_lossless) mix->capacity_bytes = k4MiB;
    if (mix->is_lossless && mix->sizes == Sizes::kMixed) mix->sizes = Sizes::kSmall;
    if (!mix->is_lossless && draw.one_in(4))
        mix->hostile = draw.one_in(2) ? Hostile::kAwake : Hostile::kAny;
}

ReaderMix draw_reader(Draw& draw, unsigned cpu) {
    ReaderMix reader;

    reader.cpu = cpu;
    reader.form = static_cast<Form>(draw.below(4));
    reader.spin_looks = draw.one_in(2) ? 0 : static_cast<std::uint32_t>(draw.below(50));
    reader.room_bytes = 64ull << draw.below(10);
    reader.dawdle = draw.one_in(2) ? 0 : static_cast<unsigned>(draw.below(2000));
    reader.restarts = draw.one_in(4);
    return reader;
}

void draw_readers(Draw& draw, Mix* mix) {
    for (unsigned cpu = 0; cpu < mix->cpus; cpu++) {
        const bool shared = mix->hostile == Hostile::kAny || draw.one_in(2);
        const std::uint64_t count = shared ? 1 + draw.below(3) : 1;

        for (std::uint64_t i = 0; i < count; i++) {
            mix->readers.push_back(draw_reader(draw, cpu));
            mix->readers.back().is_shared = shared;
        }
    }
}

// One CPU, one emitter, one reader, and hardly any idle time. A planted fault then has many chances
// to occur.
void narrow(Draw& draw, Mix* mix) {
    mix->readers.push_back(draw_reader(draw, 0));
    mix->readers[0].restarts = false;
    mix->readers[0].room_bytes = 8192;
    mix->readers[0].spin_looks = 0;
    mix->noise = draw.one_in(4) ? 0 : 1u << (2 + draw.below(6));
    if (mix->profile == Profile::kLaps) {
        mix->sizes = Sizes::kSmall;
        mix->rounds = 2;
        mix->round_events = 3000;
        mix->readers[0].dawdle = 1u << draw.below(14);  // the tail moves while a reader is slow
    } else if (mix->profile == Profile::kSleeps) {
        mix->sizes = Sizes::kTiny;
        mix->rounds = 300;
        mix->readers[0].dawdle = 0;
    } else {
        mix->rounds = 4;
        mix->round_events = 200;
        mix->resizes = 6;
        mix->nudges = draw.one_in(2);
    }
}

const char* name_of(Profile profile) {
    constexpr const char* kNames[] = {"any", "laps", "sleeps", "resizes"};

    return kNames[static_cast<int>(profile)];
}

}  // namespace

Mix draw_mix(std::uint64_t seed, Profile profile) {
    Draw draw(mix_bits(seed));
    Mix mix;

    mix.seed = seed;
    mix.profile = profile;
    if (profile != Profile::kAny) {
        narrow(draw, &mix);
        return mix;
    }
    draw_producer(draw, &mix);
    draw_readers(draw, &mix);
    mix.noise = draw.one_in(3) ? 0 : 1u << (3 + draw.below(8));
    return mix;
}

std::string print_mix(const Mix& mix) {
    constexpr const char* kForms[] = {"copy", "place", "bulk", "run"};
    constexpr const char* kSizes[] = {"tiny", "small", "mixed"};
    constexpr const char* kHostile[] = {"", " hostile-awake", " hostile-any"};
    std::string text = "seed " + std::to_string(mix.seed) + " (" + name_of(mix.profile) + "): ";

    text += std::to_string(mix.cpus) + " CPU x " + std::to_string(mix.emitters) +
            (mix.is_single ? " emitter without a lock, " : " emitter, ") +
            std::to_string(mix.capacity_bytes >> 10) + " KiB, " +
            kSizes[static_cast<int>(mix.sizes)] + ", " + std::to_string(mix.rounds) +
            " rounds of " + std::to_string(mix.round_events) + ", resizes " +
            std::to_string(mix.resizes) + " positions " + std::to_string(mix.positions);
    text += mix.has_boot_phase ? " boot" : "";
    text += mix.nudges ? " nudges" : "";
    text += mix.nudges_in_background ? " background-nudges" : "";
    text += mix.is_lossless ? " lossless" : "";
    text += mix.ends_by_retire ? " retire" : "";
    text += kHostile[static_cast<int>(mix.hostile)];
    text += " noise " + std::to_string(mix.noise) + "; readers:";
    for (const ReaderMix& reader : mix.readers) {
        text += " " + std::to_string(reader.cpu) + ":" + kForms[static_cast<int>(reader.form)];
        text += reader.is_shared ? ":shared" : "";
        text += reader.restarts ? ":restarts" : "";
    }
    return text;
}

}  // namespace kmes::props
