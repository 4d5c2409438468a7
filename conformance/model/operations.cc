// SPDX-License-Identifier: MIT
//
// The part of an event that is in the ring.
#include "conformance/model/operations.h"

namespace kmes::conformance {

std::uint64_t written_bytes(Written written, std::uint64_t header_bytes,
                            std::uint64_t payload_bytes) {
    switch (written) {
        case Written::whole:
            return header_bytes + payload_bytes;
        case Written::half:
            return header_bytes + payload_bytes / 2;
        case Written::header:
            return header_bytes;
        case Written::nothing:
            return 0;
    }
    return 0;
}

}  // namespace kmes::conformance
