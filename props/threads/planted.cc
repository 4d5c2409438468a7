// SPDX-License-Identifier: MIT
//
// The table of faults. See planted.h.
#include "props/threads/planted.h"

#include <cstdio>
#include <string_view>

#include "kmes/user/futex.h"

namespace kmes::props {
namespace {

constexpr const char* kSelf = "the other side accesses the word at the same time, atomically";
constexpr const char* kUnseen =
    "nobody can attach to the new buffer before the swap ends, and the attach orders the store "
    "(E14)";
constexpr const char* kLoadsAgain =
    "the next access is LOAD_WRITE_POS or LOAD_GENERATION, which acquires";
constexpr const char* kTailIsBacked =
    "LOAD_WRITE_POS follows each move to the tail (E20), and PUBLISH orders all earlier "
    "accesses: the specification requires more than this core needs";
constexpr const char* kBuffered =
    "TSan has no full fence, and locked instructions of its runtime empty the store buffer: "
    "see wake_race_test, which runs the core as it ships";
constexpr const char* kFrozen = "the buffer is frozen, and LOAD_GENERATION orders this load (E24)";
constexpr const char* kStandIn =
    "the bytes that the reader used are not ordered after their stores";

// clang-format off
const std::vector<Plant> kPlants = {
    {KMES_ORDER_TAIL, Fault::kPlain, Profile::kLaps, Finder::kTsan, "move_tail", kSelf},
    {KMES_ORDER_TAIL, Fault::kRelaxed, Profile::kLaps, Finder::kNobody, "", kTailIsBacked},
    {KMES_ORDER_TAIL_FENCE, Fault::kDropped, Profile::kLaps, Finder::kTsan, "recheck_tail",
     "a reader loads bytes written after a tail, and the store of that tail is not ordered "
     "before RECHECK_TAIL"},
    {KMES_ORDER_TAIL_FENCE, Fault::kReordered, Profile::kLaps, Finder::kPayloadCheck, "",
     "the reader accepts new bytes under the old tail"},
    {KMES_ORDER_DATA, Fault::kPlain, Profile::kLaps, Finder::kTsan, "kmes_copy_in",
     "the torn read is a race, although RECHECK_TAIL catches it"},
    {KMES_ORDER_WALK_SIZE, Fault::kPlain, Profile::kLaps, Finder::kNobody, "",
     "the producer reads its own stores, in its critical section"},
    {KMES_ORDER_PUBLISH, Fault::kPlain, Profile::kLaps, Finder::kTsan, "kmes_publish", kSelf},
    {KMES_ORDER_PUBLISH, Fault::kRelaxed, Profile::kLaps, Finder::kTsan,
     "kmes_data_is_valid", kStandIn},
    {KMES_ORDER_WAKE_FENCE, Fault::kDropped, Profile::kSleeps, Finder::kNobody, "", kBuffered},
    {KMES_ORDER_WAKE_FENCE, Fault::kReordered, Profile::kSleeps, Finder::kSleepCheck, "",
     "need_wake is loaded before write_pos is visible: nobody wakes (E1)"},
    {KMES_ORDER_NEED_WAKE, Fault::kPlain, Profile::kSleeps, Finder::kTsan, "wake_if_asked", kSelf},
    {KMES_ORDER_COUNTER, Fault::kPlain, Profile::kSleeps, Finder::kTsan, "wake_if_asked", kSelf},
    {KMES_ORDER_COUNTER, Fault::kRelaxed, Profile::kSleeps, Finder::kTsan, "sleep_would_miss",
     "the re-check is not ordered after the stores before the loaded counter (E2)"},
    {KMES_ORDER_FRESH, Fault::kPlain, Profile::kResizes, Finder::kNobody, "", kUnseen},
    {KMES_ORDER_SWAP_DATA, Fault::kPlain, Profile::kResizes, Finder::kNobody, "", kUnseen},
    {KMES_ORDER_SWAP_TAIL, Fault::kPlain, Profile::kResizes, Finder::kNobody, "", kUnseen},
    {KMES_ORDER_SWAP_PUBLISH, Fault::kPlain, Profile::kResizes, Finder::kNobody, "", kUnseen},
    {KMES_ORDER_SWAP_PUBLISH, Fault::kRelaxed, Profile::kResizes, Finder::kNobody, "", kUnseen},
    {KMES_ORDER_GENERATION, Fault::kPlain, Profile::kResizes, Finder::kTsan, "retire", kSelf},
    {KMES_ORDER_GENERATION, Fault::kRelaxed, Profile::kResizes, Finder::kTsan, "follow_generation",
     "FROZEN_WRITE_POS is not ordered after the last PUBLISH (E24)"},
    {KMES_ORDER_RETIRE_COUNTER, Fault::kPlain, Profile::kResizes, Finder::kTsan, "retire", kSelf},
    {KMES_ORDER_RETIRE_COUNTER, Fault::kRelaxed, Profile::kResizes, Finder::kTsan,
     "sleep_would_miss",
     "the re-check is not ordered after GENERATION (E3)"},
    {KMES_ORDER_STATIC_FIELD, Fault::kPlain, Profile::kResizes, Finder::kNobody, "",
     "written once, before anybody can attach"},
    {KMES_ORDER_LOAD_WRITE_POS, Fault::kPlain, Profile::kLaps, Finder::kTsan,
     "load_positions", kSelf},
    {KMES_ORDER_LOAD_WRITE_POS, Fault::kRelaxed, Profile::kLaps, Finder::kTsan,
     "kmes_data_is_valid", kStandIn},
    {KMES_ORDER_LOAD_TAIL, Fault::kPlain, Profile::kLaps, Finder::kTsan, "load_positions", kSelf},
    {KMES_ORDER_LOAD_TAIL, Fault::kRelaxed, Profile::kLaps, Finder::kNobody, "", kTailIsBacked},
    {KMES_ORDER_READ_DATA, Fault::kPlain, Profile::kLaps, Finder::kTsan, "kmes_copy_out",
     "the torn read is a race, although RECHECK_TAIL catches it"},
    {KMES_ORDER_DATA_FENCE, Fault::kDropped, Profile::kLaps, Finder::kTsan, "recheck_tail",
     "RECHECK_TAIL is not ordered after the tail under which the loaded bytes were written (E4)"},
    {KMES_ORDER_DATA_FENCE, Fault::kReordered, Profile::kLaps, Finder::kPayloadCheck, "",
     "the reader accepts a tail that is older than the bytes (E4)"},
    {KMES_ORDER_RECHECK_TAIL, Fault::kPlain, Profile::kLaps, Finder::kTsan, "recheck_tail", kSelf},
    {KMES_ORDER_RECHECK_TAIL, Fault::kSkipped, Profile::kLaps, Finder::kPayloadCheck, "",
     "every access is ordered, but the bytes are torn"},
    {KMES_ORDER_LOAD_GENERATION, Fault::kPlain, Profile::kResizes, Finder::kTsan, "retire", kSelf},
    {KMES_ORDER_LOAD_GENERATION, Fault::kRelaxed, Profile::kResizes, Finder::kTsan,
     "follow_generation",
     "FROZEN_WRITE_POS is not ordered after the last PUBLISH (E24)"},
    {KMES_ORDER_FROZEN_WRITE_POS, Fault::kPlain, Profile::kResizes, Finder::kNobody, "", kFrozen},
    {KMES_ORDER_FROZEN_WRITE_POS, Fault::kRelaxed, Profile::kResizes, Finder::kNobody, "", kFrozen},
    {KMES_ORDER_SLEEP_COUNTER, Fault::kPlain, Profile::kSleeps, Finder::kTsan,
     "kmes_reader_wait", kSelf},
    {KMES_ORDER_SLEEP_COUNTER, Fault::kRelaxed, Profile::kSleeps, Finder::kTsan,
     "sleep_would_miss",
     "the re-check is not ordered after the stores before the loaded counter (E2)"},
    {KMES_ORDER_ASK_WAKE, Fault::kPlain, Profile::kSleeps, Finder::kTsan,
     "kmes_reader_wait", kSelf},
    {KMES_ORDER_ASK_WAKE, Fault::kRelaxed, Profile::kSleeps, Finder::kNobody, "",
     "no access of the consumer precedes it; SLEEP_FENCE orders the later ones"},
    {KMES_ORDER_SLEEP_FENCE, Fault::kDropped, Profile::kSleeps, Finder::kNobody, "", kBuffered},
    {KMES_ORDER_SLEEP_FENCE, Fault::kReordered, Profile::kSleeps, Finder::kSleepCheck, "",
     "write_pos is loaded before need_wake is visible: nobody wakes (E1)"},
    {KMES_ORDER_SLEEP_WRITE_POS, Fault::kPlain, Profile::kSleeps, Finder::kTsan,
     "sleep_would_miss", kSelf},
    {KMES_ORDER_SLEEP_WRITE_POS, Fault::kRelaxed, Profile::kSleeps, Finder::kNobody,
     "", kLoadsAgain},
    {KMES_ORDER_SLEEP_GENERATION, Fault::kPlain, Profile::kResizes, Finder::kTsan,
     "sleep_would_miss", kSelf},
    {KMES_ORDER_SLEEP_GENERATION, Fault::kRelaxed, Profile::kResizes, Finder::kNobody, "",
     kLoadsAgain},
    {KMES_ORDER_CLEAR_WAKE, Fault::kPlain, Profile::kSleeps, Finder::kTsan, "clear_wake", kSelf},
};
// clang-format on

int* variable_of(Fault fault) {
    switch (fault) {
        case Fault::kPlain:
            return &kmes_tsan_plain_label;
        case Fault::kRelaxed:
            return &kmes_tsan_relaxed_label;
        case Fault::kDropped:
            return &kmes_tsan_dropped_label;
        case Fault::kReordered:
            return &kmes_tsan_reordered_label;
        case Fault::kSkipped:
            break;
    }
    return &kmes_tsan_skipped_label;
}

}  // namespace

const std::vector<Plant>& all_plants() {
    return kPlants;
}

std::vector<PlantPlace> all_plant_places() {
    struct Label {
        enum kmes_order_label label;
        std::string_view access;
    };
#define LABEL(label, access, field) {KMES_ORDER_##label, #access},
    const std::vector<Label> labels = {KMES_ORDER_LABELS(LABEL)};
#undef LABEL
    std::vector<PlantPlace> places;

    for (const auto& [label, access] : labels) {
        if (access == "validated") continue;    // no access: it confirms the earlier accesses
        if (access == "fence_light") continue;  // a compiler fence; wake_race_test has its pair
        if (access.starts_with("fence")) {
            places.push_back({label, Fault::kDropped});
            places.push_back({label, Fault::kReordered});
            continue;
        }
        places.push_back({label, Fault::kPlain});
        if (access.ends_with("release") || access.ends_with("acquire"))
            places.push_back({label, Fault::kRelaxed});
        if (label == KMES_ORDER_RECHECK_TAIL) places.push_back({label, Fault::kSkipped});
    }
    return places;
}

const char* name_of(enum kmes_order_label label) {
#define NAME(label, access, field) #label,
    constexpr const char* kNames[] = {KMES_ORDER_LABELS(NAME)};
#undef NAME

    return kNames[label];
}

const char* name_of(Fault fault) {
    constexpr const char* kNames[] = {"plain", "relaxed", "dropped", "reordered", "skipped"};

    return kNames[static_cast<int>(fault)];
}

const char* name_of(Finder finder) {
    constexpr const char* kNames[] = {"nobody", "payload check", "sleep check", "TSan"};

    return kNames[static_cast<int>(finder)];
}

int run_planted(const Plant& plant, std::uint64_t seconds) {
    const std::uint64_t begin = kmes_clock_monotonic_ns();

    *variable_of(plant.fault) = plant.label;
    for (std::uint64_t seed = 1; kmes_clock_monotonic_ns() - begin < seconds * 1000000000; seed++) {
        printf("run %llu\n", static_cast<unsigned long long>(seed));
        fflush(stdout);
        const RunResult result = run_mix(draw_mix(seed, plant.profile));

        if (result.finder == Finder::kNobody) continue;
        printf("found: %s\n", result.error.c_str());
        fflush(stdout);
        return result.finder == Finder::kSleepCheck ? kSleepStatus : kPayloadStatus;
    }
    return 0;
}

}  // namespace kmes::props
