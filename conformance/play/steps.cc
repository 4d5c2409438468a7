// SPDX-License-Identifier: MIT
//
// See steps.h.
#include "conformance/play/steps.h"

#include <utility>

namespace kmes::conformance {

std::uint64_t bytes_in(Stage& stage, std::uint32_t cpu, const Amount& amount) {
    switch (amount.of) {
        case Amount::Of::current:
            return amount.in(capacity(stage, cpu));
        case Amount::Of::usual:
            return amount.in(stage.default_setup().capacity_bytes);
        case Amount::Of::nothing:
            break;
    }
    return amount.more;
}

Steps::Steps() = default;
Steps::Steps(std::initializer_list<Step> steps) : steps_(steps) {}
Steps::Steps(const Steps& other) = default;
Steps::Steps(Steps&& other) noexcept = default;
Steps& Steps::operator=(const Steps& other) = default;
Steps& Steps::operator=(Steps&& other) noexcept = default;
Steps::~Steps() = default;

void Steps::push_back(Step step) {
    steps_.push_back(std::move(step));
}

void Steps::append(const Steps& more) {
    steps_.insert(steps_.end(), more.steps_.begin(), more.steps_.end());
}

bool Steps::empty() const {
    return steps_.empty();
}

const Step* Steps::begin() const {
    return steps_.data();
}

const Step* Steps::end() const {
    return steps_.data() + steps_.size();
}

}  // namespace kmes::conformance
