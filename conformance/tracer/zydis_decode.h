// SPDX-License-Identifier: MIT
//
// One instruction, decoded by Zydis. For the sources that use Zydis; others include decode.h.
#ifndef KMES_CONFORMANCE_TRACER_ZYDIS_DECODE_H_
#define KMES_CONFORMANCE_TRACER_ZYDIS_DECODE_H_

#include <Zydis/Zydis.h>

#include <cstddef>
#include <cstdint>

namespace kmes::conformance::tracing {

struct Decoded {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

// Returns false if the bytes are no instruction of 64-bit mode.
inline bool decode(const uint8_t* code, size_t code_bytes, Decoded& decoded) {
    ZydisDecoder decoder;
    return ZYAN_SUCCESS(
               ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, code_bytes, &decoded.instruction,
                                               decoded.operands));
}

}  // namespace kmes::conformance::tracing

#endif  // KMES_CONFORMANCE_TRACER_ZYDIS_DECODE_H_
