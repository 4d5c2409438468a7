// SPDX-License-Identifier: MIT
//
// See step_text.h.
#include "conformance/play/step_text.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>

namespace kmes::conformance {

namespace {

std::string events(std::string_view count, const Amount& bytes) {
    return fmt::format("{} event{} of {} bytes", count, count == "1" ? "" : "s", describe(bytes));
}

std::string events(std::uint64_t count, const Amount& bytes) {
    return events(std::to_string(count), bytes);
}

// One function for each producer step; other steps have no description.
struct StepText {
    std::uint64_t count = 0;

    std::string operator()(const Emit& emit) const {
        const bool is_plain = emit.count.of == Amount::Of::nothing;
        return "emit " +
               events(is_plain ? std::to_string(count) : describe(emit.count), emit.bytes);
    }
    std::string operator()(const EmitEverywhere& emit) const {
        return "emit " + events(count, emit.bytes) + " on each CPU";
    }
    std::string operator()(const EmitTyped& emit) const {
        return fmt::format("emit {} with a type of {} bytes", events(1, emit.bytes),
                           emit.type_bytes);
    }
    std::string operator()(const EmitHeaders& emit) const {
        return "emit " + events(count, emit.bytes) + " without a payload";
    }
    std::string operator()(const EmitBytes& emit) const {
        return fmt::format("emit events of {} bytes together", describe(emit.bytes));
    }
    std::string operator()(const EmitSmall& emit) const {
        return fmt::format("emit small events of {} bytes together", describe(emit.bytes));
    }
    std::string operator()(const EmitTo& to) const {
        return fmt::format("emit up to {} bytes before the end of the data region",
                           describe(to.before_end));
    }
    std::string operator()(const Reserve& reserve) const {
        return fmt::format("make room for an event of {} bytes, of which is written: {}",
                           describe(reserve.bytes),
                           kWrittenNames[static_cast<std::size_t>(reserve.written)]);
    }
    std::string operator()(const Batch& batch) const {
        return fmt::format("publish a batch of {} events", batch.sizes.size());
    }
    std::string operator()(const Drop& drop) const {
        return fmt::format("drop {} event{}", drop.count, drop.count == 1 ? "" : "s");
    }
    std::string operator()(const Lap& lap) const {
        return fmt::format("overwrite the buffer with events of {} bytes", describe(lap.bytes));
    }
    std::string operator()(const Outrun& outrun) const {
        return fmt::format("overwrite the buffer with {} bytes", outrun.bytes);
    }
    std::string operator()(const OverwriteAll&) const { return "overwrite the buffer"; }
    std::string operator()(const Resize& resize) const {
        return fmt::format("resize all buffers to {} bytes{}", describe(resize.capacity),
                           resize.rule == PositionRule::keep ? "" : ", with other positions");
    }
    std::string operator()(const Swap& swap) const {
        return fmt::format("swap the buffer for one of {} bytes", describe(swap.capacity));
    }
    std::string operator()(const NudgeRetired&) const {
        return fmt::format("nudge the retired buffers {} time{}", count, count == 1 ? "" : "s");
    }
    std::string operator()(const FutexWake&) const { return "call FUTEX_WAKE without an event"; }
    std::string operator()(const SpuriousWake&) const { return "wake the consumer spuriously"; }
    std::string operator()(const Times&) const {
        return fmt::format("play the next steps {} time{}", count, count == 1 ? "" : "s");
    }
    template <typename Other>
    std::string operator()(const Other&) const {
        return "a step that is always played";
    }
};

std::string pages_text(std::uint64_t first_page, std::uint64_t pages) {
    if (first_page == 0 && pages == 1) return "the metadata page";
    if (pages == 1) return fmt::format("page {} of the mapping", first_page);
    return fmt::format("pages {} to {} of the mapping", first_page, first_page + pages - 1);
}

struct WalkText {
    const AccessNumber& access;
    std::uint64_t further_wakes = 0;

    std::string operator()(const BeforeEachAccess& walk) const {
        const bool is_first = access.counted == Counted::first_of_each;
        std::string text =
            fmt::format("{} before access {} to the metadata page", "the actions", access.number);
        if (is_first) text += ", of those in which an instruction first reaches a field";
        if (walk.after) return text + ", " + std::string(describe(*walk.after));
        if (walk.spurious_wakes > 0)
            return text + (further_wakes == 0
                               ? ", after a spurious wake"
                               : fmt::format(", after {} spurious wakes", further_wakes + 1));
        return text + ", after a wake";
    }
    std::string operator()(const BeforeAccessTo& walk) const {
        return fmt::format("the actions before access {} to {}, after a wake", access.number,
                           pages_text(walk.first_page, walk.pages));
    }
    std::string operator()(const UnderRead& walk) const {
        return fmt::format(
            "the actions before the first access to {} page{} of the data from "
            "offset {} on",
            walk.pages, walk.pages == 1 ? "" : "s", describe(walk.at));
    }
    std::string operator()(const InNextBuffer& next) const {
        const std::string_view where = next.pages == NextPages::metadata ? "the metadata page"
                                       : next.pages == NextPages::data   ? "the data"
                                                                         : "any page";
        return fmt::format("the actions before access {} to {} of the next buffer", access.number,
                           where);
    }
    std::string operator()(const HoldAt& hold) const {
        const std::string_view where =
            hold.place == AccessPlace::in_next_buffer ? " of the next buffer" : "";
        return fmt::format("the thread is held {} access {} to {}{}",
                           hold.place == AccessPlace::after ? "after" : "at", access.number,
                           pages_text(hold.page, 1), where);
    }
    std::string operator()(const ActAt& walk) const {
        return "the actions " + fmt::format(fmt::runtime(walk.place), access.number);
    }
    template <typename Other>
    std::string operator()(const Other&) const {
        return "no walk";
    }
};

}  // namespace

std::string describe(const Amount& amount) {
    const auto rest = static_cast<std::int64_t>(amount.more);
    if (amount.of == Amount::Of::nothing) return std::to_string(amount.more);
    std::string text =
        amount.of == Amount::Of::usual ? "the capacity of the command line" : "the capacity";
    if (amount.parts != 1)
        text = fmt::format("{}/{} of {}", amount.times, amount.parts, text);
    else if (amount.times != 1)
        text = fmt::format("{} x {}", amount.times, text);
    if (rest > 0) text += fmt::format(" + {}", rest);
    if (rest < 0) text += fmt::format(" - {}", 0 - amount.more);
    return text;
}

std::string describe(const Step& step, std::uint64_t count) {
    return std::visit(StepText{count}, step.what);
}

std::string describe_walk(const Step& walk, const AccessNumber& access,
                          std::uint64_t further_wakes) {
    return std::visit(WalkText{access, further_wakes}, walk.what);
}

}  // namespace kmes::conformance
