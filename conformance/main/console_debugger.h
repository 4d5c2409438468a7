// SPDX-License-Identifier: MIT
//
// --debug: stops at each event of the testee and asks a person how to continue. All commands go
// through the runner, which is the only possible tracer of the testee. After `detach` a debugger
// can trace it. Knows no case.
#ifndef KMES_CONFORMANCE_MAIN_CONSOLE_DEBUGGER_H_
#define KMES_CONFORMANCE_MAIN_CONSOLE_DEBUGGER_H_

#include <sys/types.h>

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>

#include "conformance/stage/debugger.h"
#include "conformance/tracer/calls.h"

namespace kmes::conformance {

class ConsoleDebugger : public Debugger {
  public:
    ConsoleDebugger(std::istream& in, std::ostream& out) : in_(in), out_(out) {}

    void at(Stage& stage, const TracerEvent& event) override;

  private:
    enum class After { stay, resume };

    std::string place_text(const TracerEvent& event);
    void read_commands(Stage& stage);
    After execute(Stage& stage, const std::string& line);
    void print_state(Stage& stage);
    void emit(Stage& stage, const std::string& arguments);
    void detach(Stage& stage);

    std::istream& in_;
    std::ostream& out_;
    bool attached_ = false;  // before this, nothing is asked
    bool stepping_ = true;   // stop at each event
    bool accesses_ = false;  // single accesses count as events
    bool has_explained_ = false;
    CallReader reader_;
    AuthorsFrames authors_;  // of the accesses so far
};

// One line for a person: what the testee is about to do, or has done. Empty: nothing to say.
std::string describe_event(const TracerEvent& event);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_CONSOLE_DEBUGGER_H_
