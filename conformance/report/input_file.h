// SPDX-License-Identifier: MIT
//
// Reads a file of unknown content, with one clear error line if it cannot be read.
#ifndef KMES_CONFORMANCE_REPORT_INPUT_FILE_H_
#define KMES_CONFORMANCE_REPORT_INPUT_FILE_H_

#include <cstddef>
#include <string>

namespace kmes::conformance {

struct InputFile {
    std::string text;
    std::string error;        // one line that names the file; if empty, `text` is complete
    bool is_missing = false;  // the error is that no such file exists
};

// Reads a regular file of at most `most` bytes. Opening a FIFO does not block.
InputFile read_input_file(const std::string& path, std::size_t most);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_INPUT_FILE_H_
