// SPDX-License-Identifier: MIT
//
// A form into which a record file is converted.
#ifndef KMES_KMESCTL_CONVERT_FORM_H_
#define KMES_KMESCTL_CONVERT_FORM_H_

#include <cstdio>
#include <memory>
#include <string>

#include "record/format.h"

namespace kmes::kmesctl {

// Functions throw a Failure of kExitFailed with the reason, where the output cannot be written.
class ConvertForm {
  public:
    virtual ~ConvertForm() = default;
    virtual void add(const record::Item& item) = 0;
    // At the end of each block.
    virtual void end_block() {}
    virtual void finish() = 0;

  protected:
    // `done` says whether a write succeeded; errno says why it did not.
    static void check(bool done);
};

// One JSON object a line. `out` stays the caller's.
std::unique_ptr<ConvertForm> make_json_form(std::FILE* out);
std::unique_ptr<ConvertForm> make_csv_form(std::FILE* out);

// A trace for ui.perfetto.dev and trace_processor. `out` stays the caller's.
std::unique_ptr<ConvertForm> make_perfetto_form(std::FILE* out);

// A trace of the Common Trace Format, version 1.8, in the folder `path`, which must not exist: the
// text `metadata`, and a stream file for each CPU that has events or losses.
std::unique_ptr<ConvertForm> make_ctf_form(const std::string& path);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_CONVERT_FORM_H_
