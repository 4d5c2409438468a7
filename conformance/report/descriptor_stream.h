// SPDX-License-Identifier: MIT
//
// Writes to a descriptor, which lose nothing when a signal interrupts them. Knows no files and no
// report.
#ifndef KMES_CONFORMANCE_REPORT_DESCRIPTOR_STREAM_H_
#define KMES_CONFORMANCE_REPORT_DESCRIPTOR_STREAM_H_

#include <array>
#include <streambuf>
#include <string_view>

namespace kmes::conformance {

// Writes all of `text`: continues after a signal, a short write, or EAGAIN of a non-blocking
// descriptor. Returns 0 or an errno value; then a part may have been written.
int write_all(int fd, std::string_view text);

// The buffer of an output stream on a descriptor that it does not own. std::cout would drop its
// buffer when a signal interrupts the write.
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
