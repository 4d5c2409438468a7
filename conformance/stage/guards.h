// SPDX-License-Identifier: MIT
//
// The guarded pages of a stage. The case guards pages to decide about each access before it
// happens. The recorder guards pages to record the accesses for the trace of a failure.
#ifndef KMES_CONFORMANCE_STAGE_GUARDS_H_
#define KMES_CONFORMANCE_STAGE_GUARDS_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

struct StageParts;

// The decision about an access to a guarded page.
enum class AtGuard {
    step,     // step this access, keep the guards
    release,  // remove all guards of the case and continue
    done,     // the function has done the access itself
};
using GuardFunction = std::function<AtGuard(const GuardHit&)>;
// Decides about the accesses to the mappings that its owner guards (Guards::guard_mapping).
class AccessDecider {
  public:
    virtual ~AccessDecider() = default;
    virtual AtGuard decide(const GuardHit& hit) = 0;
    // Called first, in fast runs that are not recorded. Returns true if the access is only to be
    // stepped.
    virtual bool is_plain(const GuardHit& hit) = 0;
};
// Called after a stepped access, while the thread is stopped.
using SteppedFunction = std::function<void(const GuardHit&, const GuardStep&)>;
// The guarded part of a mapping.
enum class Guarded { metadata, all };

class Guards {
  public:
    explicit Guards(StageParts& parts) : parts_(parts) {}

    // Guards `pages` pages of the current buffer of a CPU, in the testee's mapping. Page 0 is the
    // metadata. `function` is called before each access to them and returns the decision. `stepped`
    // is called after each stepped access. Throws Stop if the pages cannot be guarded, and
    // SuiteError if the testee has not mapped the buffer.
    void guard(std::uint32_t cpu, std::uint64_t first_page, std::uint64_t pages,
               GuardFunction function, SteppedFunction stepped = nullptr);
    // Guards a new mapping of any buffer. The case calls guard_mapping() when the mapping is made
    // (Hooks::set_on_mapped). One decider serves all these mappings. To be set before start(), and
    // again after release().
    void set_decider(AccessDecider& decider);
    void guard_mapping(const Mapped& mapped, Guarded what);
    // Guards the data of the guarded mappings too, from now on.
    void guard_data();
    // Guards only the metadata pages of the guarded mappings, from now on.
    void release_data();
    // Removes all guards of the case.
    void release();
    // See Tracer::let_reads_pass.
    bool let_reads_pass(MappingId mapping, bool pass);
    // Does the read at this hit in two parts: first `split_bytes` bytes, then `between`, then the
    // rest. For AtGuard::done.
    void step_torn(const GuardHit& hit, std::uint32_t split_bytes,
                   const std::function<void()>& between);
    // True if some accesses stop the testee, for the case or for the recorder.
    bool stop_any() const { return !guarded_.empty() || is_recording(); }
    // True if the suite single-steps the consumer. The time that the consumer takes then shows
    // nothing.
    bool step_everything() const;

    // -- For the stage --
    // Whether count_if_plain() is to be called before each hit.
    bool has_plain_hits() const;
    // Returns whether the access at this hit is only to be stepped. Counts the hit if so.
    bool count_if_plain(const GuardHit& hit);
    void hit(const GuardHit& event);
    // Guards a new mapping for the trace of a failure, whatever the case guards. After many
    // accesses the recorder guards only metadata pages, and later none.
    void record_accesses_of(const Mapping& mapping);
    // The hits on pages that the case guards, and all other hits.
    std::uint64_t hits() const { return hits_; }
    std::uint64_t accesses_recorded() const { return accesses_recorded_; }

  private:
    // Pages of a mapping that the case guards.
    struct Pages {
        MappingId mapping = 0;
        std::uint64_t first_page = 0;
        std::uint64_t pages = 0;
    };
    static Pages pages_of(MappingId mapping, std::uint64_t first_page, std::uint64_t pages);

    Tracer& tracer() const;
    bool is_asked_for(const GuardHit& event) const;
    bool is_recording() const;
    bool is_recording_data() const;
    void guard_for_recorder_alone(MappingId mapping);
    void stop_recording(const GuardHit& event);

    StageParts& parts_;
    std::vector<Pages> guarded_;
    GuardFunction on_guard_;
    SteppedFunction on_stepped_;
    AccessDecider* decider_ = nullptr;
    std::uint64_t hits_ = 0;
    std::uint64_t accesses_recorded_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_GUARDS_H_
