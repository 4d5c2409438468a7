// SPDX-License-Identifier: MIT
//
// The guarded pages of a stage: those that the case asks for, each access to which the case decides
// about before it happens, and those of the recorder, for the trace of a failure.
#ifndef KMES_CONFORMANCE_STAGE_GUARDS_H_
#define KMES_CONFORMANCE_STAGE_GUARDS_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

struct StageParts;

// What is to be done with an access to a guarded page.
enum class AtGuard {
    step,     // do this one access, keep the guards
    release,  // take all guards away and go on
    done,     // the function has done the access itself
};
using GuardFunction = std::function<AtGuard(const GuardHit&)>;
// Called after an access was stepped, while the thread stands after it.
using SteppedFunction = std::function<void(const GuardHit&, const GuardStep&)>;
// What of a mapping is guarded.
enum class Guarded { metadata, all };

class Guards {
  public:
    explicit Guards(StageParts& parts) : parts_(parts) {}

    // Guards pages of the current buffer of a CPU, as the testee has it mapped; `function` is
    // called at each access to them before it happens, and returns what is to be done with it.
    void guard(std::uint32_t cpu, std::uint64_t first_page, std::uint64_t pages,
               GuardFunction function, SteppedFunction stepped = nullptr);
    // The same for all of a mapping, whichever buffer it shows: to be called when it is made
    // (Hooks::set_on_mapped). The function is set once, for all of them.
    void set_on_guard(GuardFunction function) { on_guard_ = std::move(function); }
    void guard_mapping(const Mapped& mapped, Guarded what);
    // Asked first, where the run is fast and not recorded: true if nothing but the access is to be
    // done at this hit. Before start().
    void set_on_plain_guard(std::function<bool(const GuardHit&)> function) {
        on_plain_guard_ = std::move(function);
    }
    // From now on the data of what is guarded as well.
    void guard_data();
    // From now on only the metadata pages of what is guarded.
    void release_data();
    void release();
    // See Tracer::let_reads_pass.
    bool let_reads_pass(MappingId mapping, bool pass);
    // The read at this hit is done in two: the first `split_bytes` of it before `between`, the rest
    // after it. For AtGuard::done.
    void step_torn(const GuardHit& hit, std::uint32_t split_bytes,
                   const std::function<void()>& between);
    // Some accesses are stopped at: for the case, or for the recorder.
    bool stop_any() const { return !guarded_.empty() || is_recording(); }
    // The suite steps every instruction of the consumer, so the time that it takes says nothing.
    bool step_everything() const;

    // -- For the stage --
    bool has_plain_guard() const { return on_plain_guard_ != nullptr; }
    // Nothing but the access is to be done at this hit, which then counts.
    bool is_plain(const GuardHit& hit);
    void hit(const GuardHit& event);
    // For the trace of a failure: every access is recorded, whatever the case guards itself.
    void record_accesses_of(const Mapping& mapping);
    // Hits that the case has asked for, and the others.
    std::uint64_t hits() const { return hits_; }
    std::uint64_t accesses_recorded() const { return accesses_recorded_; }

  private:
    // What a case has guarded itself.
    struct Pages {
        MappingId mapping = 0;
        std::uint64_t first_page = 0;
        std::uint64_t pages = 0;
    };
    static Pages pages_of(MappingId mapping, std::uint64_t first_page, std::uint64_t pages);

    Tracer& tracer() const;
    bool is_asked_for(const GuardHit& event) const;
    bool is_recording() const;
    void stop_recording(const GuardHit& event);

    StageParts& parts_;
    std::vector<Pages> guarded_;
    GuardFunction on_guard_;
    SteppedFunction on_stepped_;
    std::function<bool(const GuardHit&)> on_plain_guard_;
    std::uint64_t hits_ = 0;
    std::uint64_t accesses_recorded_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_GUARDS_H_
