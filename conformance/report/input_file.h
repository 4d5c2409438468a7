// SPDX-License-Identifier: MIT
//
// Reads a file that may be anything, with one clear line where it cannot be read.
#ifndef KMES_CONFORMANCE_REPORT_INPUT_FILE_H_
#define KMES_CONFORMANCE_REPORT_INPUT_FILE_H_

#include <cstddef>
#include <string>

namespace kmes::conformance {

struct InputFile {
    std::string text;
    std::string error;        // one line that names the file; empty: `text` is all of it
    bool is_missing = false;  // the error: there is no such file
};

// A regular file of at most `most` bytes. Opening a FIFO does not wait.
InputFile read_input_file(const std::string& path, std::size_t most);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_INPUT_FILE_H_
