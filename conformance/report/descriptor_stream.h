// SPDX-License-Identifier: MIT
//
// Writes to a descriptor that lose nothing to a signal. Knows no files and no report.
#ifndef KMES_CONFORMANCE_REPORT_DESCRIPTOR_STREAM_H_
#define KMES_CONFORMANCE_REPORT_DESCRIPTOR_STREAM_H_

#include <array>
#include <streambuf>
#include <string_view>

namespace kmes::conformance {

// Writes all of `text`, also where a signal interrupts it, where less is taken at a time, and where
// the descriptor does not block. Returns 0 or an errno value; then a part may have been written.
int write_all(int fd, std::string_view text);

// The buffer of an output stream on a descriptor, which it does not own. Unlike std::cout, which
// drops what it holds when a signal interrupts the write.
class DescriptorBuffer : public std::streambuf {
  public:
    explicit DescriptorBuffer(int fd);
    ~DescriptorBuffer() override;
    DescriptorBuffer(const DescriptorBuffer&) = delete;
    DescriptorBuffer& operator=(const DescriptorBuffer&) = delete;

  protected:
    int_type overflow(int_type byte) override;
    int sync() override;

  private:
    std::array<char, 8192> bytes_{};
    int fd_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_DESCRIPTOR_STREAM_H_
