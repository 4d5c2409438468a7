// SPDX-License-Identifier: MIT
//
// See verified_buffer.h.
#include "conformance/play/verified_buffer.h"

#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

class OnceSure {
  public:
    OnceSure(Stage& stage, std::uint64_t k, const std::function<void(pid_t)>& act)
        : stage_(stage), left_(k), act_(act) {
        stage.hooks().set_on_mapped([this](const Mapped& mapped) {
            if (reader_ != 0 || !is_present(stage_, mapped, 0)) return;
            reader_ = mapped.tid;
            stage_.guards().guard(0, 0, 1, [this](const GuardHit& hit) { return at(hit); });
        });
        stage.hooks().set_on_attached([this](const Attached& attached) {
            if (attached.error == 0 && attached.tid == reader_ && has_read_) is_sure_ = true;
        });
    }
    ~OnceSure() {
        stage_.hooks().set_on_mapped(nullptr);
        stage_.hooks().set_on_attached(nullptr);
    }
    OnceSure(const OnceSure&) = delete;
    OnceSure& operator=(const OnceSure&) = delete;

    bool has_acted() const { return left_ == 0; }

  private:
    static constexpr std::uint64_t kAccessesAtMost = 40;

    AtGuard at(const GuardHit& hit) {
        if (hit.tid != reader_) return AtGuard::step;
        if (++accesses_ > kAccessesAtMost) return AtGuard::release;
        for (const BufferAccess& access : hit.accesses)
            has_read_ |= access.is_read && access.touches(kGenerationOffset);
        if (!is_sure_ || --left_ > 0) return AtGuard::step;
        act_(hit.tid);
        return AtGuard::release;
    }

    Stage& stage_;
    std::uint64_t left_;
    const std::function<void(pid_t)>& act_;
    std::uint64_t accesses_ = 0;
    pid_t reader_ = 0;
    bool has_read_ = false;
    bool is_sure_ = false;
};

}  // namespace

PlayAt at_access_to_a_verified_buffer() {
    return [](Stage& stage, std::uint64_t number, const std::function<void()>& wake,
              const std::function<void(pid_t)>& act) {
        OnceSure once_sure(stage, number, act);
        wake();
        stage.wait_asleep();
        stage.guards().release();
        return once_sure.has_acted();
    };
}

}  // namespace kmes::conformance
