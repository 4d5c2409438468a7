// SPDX-License-Identifier: MIT
// An output format of a converted record file.
#ifndef KMES_KMESCTL_CONVERT_FORM_H_
#define KMES_KMESCTL_CONVERT_FORM_H_

#include <cstdio>
#include <memory>
#include <string>

#include "record/format.h"

namespace kmes::kmesctl {

// If the output cannot be written, the functions throw a Failure of kExitFailed with the reason.
class ConvertForm {
  public:
    virtual ~ConvertForm() = default;
    virtual void add(const record::Item& item) = 0;
    // Called at the end of each block.
    virtual void end_block() {}
    virtual void finish() = 0;

  protected:
    // Throws if `done` is false; errno has the reason.
    static void check(bool done);
};

// One JSON object a line. The caller owns `out`.
std::unique_ptr<ConvertForm> make_json_form(std::FILE* out);
std::unique_ptr<ConvertForm> make_csv_form(std::FILE* out);

// A trace for ui.perfetto.dev and trace_processor. The caller owns `out`.
std::unique_ptr<ConvertForm> make_perfetto_form(std::FILE* out);

// A trace of the Common Trace Format, version 1.8, in the empty folder `path`. It consists of the
// text `metadata`, and a stream file for each CPU that has events or losses.
std::unique_ptr<ConvertForm> make_ctf_form(const std::string& path);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_CONVERT_FORM_H_
