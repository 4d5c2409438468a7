// SPDX-License-Identifier: MIT
//
// Functions in each scope of DWARF that can hold one, for calls_test. Compilers write these scopes
// for languages that the tests do not need. The program never runs.

#define TAG_CLASS 0x02
#define TAG_ENUMERATION 0x04
#define TAG_UNIT 0x11
#define TAG_STRUCTURE 0x13
#define TAG_UNION 0x17
#define TAG_MODULE 0x1e
#define TAG_SUBPROGRAM 0x2e
#define TAG_INTERFACE 0x38
#define TAG_NAMESPACE 0x39
#define AT_NAME 0x03
#define AT_STATEMENTS 0x10
#define AT_LOW_ADDRESS 0x11
#define AT_HIGH_ADDRESS 0x12
#define AT_LANGUAGE 0x13
#define FORM_ADDRESS 0x01
#define FORM_STRING 0x08
#define FORM_BYTE 0x0b
#define FORM_OFFSET 0x17
#define LANGUAGE_C 0x0c
#define LANGUAGE_ADA 0x0d
#define LANGUAGE_D 0x13

// Its number, the tag, the function, and the file of the function.
#define SCOPES_OF_D(scope) \
    scope(1, TAG_MODULE, "a.b.atomicLoad!(2, ulong).atomicLoad", "/opt/ldc/include/d/a.d") \
    scope(2, TAG_UNION, "in_union", "/author/ring.d") \
    scope(3, TAG_INTERFACE, "in_interface", "/opt/dmd/druntime/import/core/atomic.d") \
    scope(4, TAG_CLASS, "in_class", "/opt/gdc/libphobos/libdruntime/core/atomic.d") \
    scope(5, TAG_STRUCTURE, "in_structure", "/author/phobos.d") \
    scope(6, TAG_ENUMERATION, "in_enumeration", "/author/.cargo/registry/src/a/b.rs") \
    scope(7, TAG_NAMESPACE, "in_namespace", "/author/nim.nim")
#define SCOPES_OF_ADA(scope) \
    scope(8, TAG_MODULE, "rings__next", "/author/rings.adb") \
    scope(9, TAG_NAMESPACE, "system__atomics__load", "/opt/gnat/adainclude/s-atopri.adb")
// Nim is compiled by way of C.
#define SCOPES_OF_C(scope) \
    scope(10, TAG_NAMESPACE, "next__consumer_330", "/author/consumer.nim") \
    scope(11, TAG_NAMESPACE, "eqeq___my_ring_u198", "/author/ring.nim") \
    scope(12, TAG_NAMESPACE, "copyMem__system_1709", "/usr/lib/nim/system/memory.nim") \
    scope(13, TAG_NAMESPACE, "wait__consumer_403", "/author/nimcache/@mconsumer.nim.c") \
    scope(14, TAG_NAMESPACE, "begin__", "/author/consumer.nim") \
    scope(15, TAG_NAMESPACE, "end__x64_9z", "/author/consumer.nim") \
    scope(16, TAG_NAMESPACE, "read__u64_1", "/author/ring.c") \
    scope(17, TAG_NAMESPACE, "X5BX5Deq___ring_19", "/author/ring.nim") \
    scope(18, TAG_NAMESPACE, "dotdotlt___ring_56", "/author/ring.nim") \
    scope(19, TAG_NAMESPACE, "taileq___ring_27", "/author/ring.nim") \
    scope(20, TAG_NAMESPACE, "at__ring_60", "/author/ring.nim") \
    scope(21, TAG_NAMESPACE, "eq_", "/author/ring.c")

#define CODE(number, tag, function, source) \
    .file number source; \
    begin_##number: .loc number 7; nop; ret; end_##number:

        .text
        .globl _start
_start:
begin_1_unit:
SCOPES_OF_D(CODE)
begin_2_unit:
SCOPES_OF_ADA(CODE)
begin_3_unit:
SCOPES_OF_C(CODE)
end_of_code:

#define ABBREVIATION(code, tag, has_children) .uleb128 code, tag; .byte has_children
#define ATTRIBUTE(name, form) .uleb128 name, form
#define END_OF_LIST .uleb128 0, 0
#define SCOPE_ABBREVIATION(number, tag, function, source) \
    ABBREVIATION(number, tag, 1); END_OF_LIST;
#define UNIT_CODE 100
#define FUNCTION_CODE 101

        .section .debug_abbrev, "", @progbits
        SCOPES_OF_D(SCOPE_ABBREVIATION)
        SCOPES_OF_ADA(SCOPE_ABBREVIATION)
        SCOPES_OF_C(SCOPE_ABBREVIATION)
        ABBREVIATION(UNIT_CODE, TAG_UNIT, 1)
        ATTRIBUTE(AT_LANGUAGE, FORM_BYTE)
        ATTRIBUTE(AT_STATEMENTS, FORM_OFFSET)
        ATTRIBUTE(AT_LOW_ADDRESS, FORM_ADDRESS)
        ATTRIBUTE(AT_HIGH_ADDRESS, FORM_ADDRESS)
        END_OF_LIST
        ABBREVIATION(FUNCTION_CODE, TAG_SUBPROGRAM, 0)
        ATTRIBUTE(AT_NAME, FORM_STRING)
        ATTRIBUTE(AT_LOW_ADDRESS, FORM_ADDRESS)
        ATTRIBUTE(AT_HIGH_ADDRESS, FORM_ADDRESS)
        END_OF_LIST
        .byte 0

#define SCOPE(number, tag, function, source) \
    .uleb128 number, FUNCTION_CODE; \
    .string function; \
    .quad begin_##number, end_##number; \
    .byte 0;
#define UNIT(number, language, begin, end, scopes) \
    .long after_unit_##number - . - 4; \
    .short 4; \
    .long 0; \
    .byte 8; \
    .uleb128 UNIT_CODE; \
    .byte language; \
    .long statements; \
    .quad begin, end; \
    scopes(SCOPE) \
    .byte 0; \
    after_unit_##number:

        .section .debug_info, "", @progbits
        UNIT(1, LANGUAGE_D, begin_1_unit, begin_2_unit, SCOPES_OF_D)
        UNIT(2, LANGUAGE_ADA, begin_2_unit, begin_3_unit, SCOPES_OF_ADA)
        UNIT(3, LANGUAGE_C, begin_3_unit, end_of_code, SCOPES_OF_C)

        .section .debug_line, "", @progbits
statements:
        .section .note.GNU-stack, "", @progbits
