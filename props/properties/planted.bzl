# SPDX-License-Identifier: MIT
"""Bugs planted in the core, one at a time. The property that is meant for a bug must find it, and
shrink it to a script of a few steps.

  name      of the test: planted_<name>_test
  file      of kmes/
  text      the original text, which occurs exactly once (the edit fails otherwise)
  instead   the replacement
  property  the property that must break
  steps     the maximum number of lines after the settings in the shortest script
  also      further saved scripts that show the bug

The saved script bug-<name>.kmes of props/corpus shows the bug, too.
"""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")
load("//tools/bazel:copts.bzl", "KMES_CXX_COPTS", "KMES_C_COPTS")
load("//tools/bazel:tags.bzl", "ONE_CONFIGURATION")

_NOT_NEWER = """        if (!is_newer(reader, header.sequence)) {
            pass_not_newer(reader, header.event_size);
            continue;
        }
"""

_CHECKS_AGAIN = """    if (sleep_would_miss(reader)) {
        clear_wake(reader);
        return false;
    }
"""

PLANTED = [
    dict(
        name = "no_fence_after_the_tail",
        file = "producer.c",
        text = "kmes_fence_release(KMES_ORDER_TAIL_FENCE);",
        instead = "",
        property = "tail",
        steps = 5,
    ),
    dict(
        name = "no_fence_before_need_wake",
        file = "producer.c",
        text = "kmes_fence_full(KMES_ORDER_WAKE_FENCE);",
        instead = "",
        property = "wake",
        steps = 2,
    ),
    dict(
        name = "counter_read_back_from_shared_memory",
        file = "producer.c",
        text = "    buffer->futex_counter++;\n    /* COUNTER",
        instead = "    buffer->futex_counter = *buffer->shared.futex_counter + 1;\n    /* COUNTER",
        property = "metadata",
        steps = 4,
    ),
    dict(
        name = "batch_passes_what_is_published",
        file = "producer.c",
        text = "    else\n        publish_pending(cpu);\n",
        instead = "",
        property = "publication",
        steps = 6,
    ),
    dict(
        name = "room_for_one_byte_too_many",
        file = "producer.c",
        text = "tail.pos <= buffer->capacity))",
        instead = "tail.pos <= buffer->capacity + 1))",
        property = "tail",
        steps = 4,
    ),
    dict(
        name = "half_of_the_capacity_is_too_large",
        file = "producer.c",
        text = "event_bytes <= buffer->capacity / 2",
        instead = "event_bytes < buffer->capacity / 2",
        property = "result",
        steps = 1,
    ),
    dict(
        name = "write_pos_before_the_bytes",
        file = "producer.c",
        text = "    append(buffer, cursor, event_bytes);\n    return 0;",
        instead = "    append(buffer, cursor, event_bytes);\n" +
                  "    cursor_store(cursor, cpu);\n    kmes_publish(buffer);\n    return 0;",
        property = "publication",
        steps = 2,
    ),
    dict(
        name = "numbers_of_interrupts_are_not_used",
        file = "guard.h",
        text = "    cpu->sequence += missed;\n",
        instead = "",
        property = "sequence",
        steps = 4,
    ),
    dict(
        name = "walk_from_the_tail",
        file = "index.h",
        text = "at->pos >> buffer->block_shift)) {",
        instead = "at->pos >> buffer->block_shift && !target)) {",
        property = "bounded-walk",
        steps = 12,
    ),
    dict(
        name = "keeps_one_event_too_many_at_a_shrink",
        file = "swap.c",
        text = "target = old_buffer->frontier - swap->new_buffer->capacity;",
        instead = "target = old_buffer->frontier - swap->new_buffer->capacity - 1;",
        property = "newest-suffix",
        steps = 5,
    ),
    dict(
        name = "generation_without_release",
        file = "swap.c",
        text = "kmes_store_release_u64(buffer->shared.generation",
        instead = "kmes_store_relaxed_u64(buffer->shared.generation",
        property = "order-strength",
        steps = 2,
    ),
    dict(
        name = "no_wake_at_a_swap",
        file = "swap.c",
        text = "    kmes_platform_queue_wake(cpu->platform, buffer);\n",
        instead = "    (void)cpu;\n",
        property = "wake",
        steps = 2,
    ),
    dict(
        name = "no_second_load_of_the_tail",
        file = "consumer.c",
        text = "        if (!recheck_tail(reader)) continue;\n" + _NOT_NEWER +
               "        if (!fits) {",
        instead = _NOT_NEWER + "        if (!fits) {",
        property = "torn",
        steps = 7,
        also = ["bug-no-second-load-of-the-tail-poked"],
    ),
    dict(
        name = "continues_at_the_tail_without_a_load",
        file = "consumer.c",
        text = "        reader->read_pos = tail_pos; /* E20: and back to step 1",
        instead = "        reader->read_pos = tail_pos;\n" +
                  "        *available_bytes = reader->capacity;\n" +
                  "        return KMES_READ_EVENT; /*",
        property = "publication",
        steps = 8,
    ),
    dict(
        name = "one_lost_too_many",
        file = "consumer.c",
        text = "? sequence - reader->last_sequence - 1 : 0;",
        instead = "? sequence - reader->last_sequence : 0;",
        property = "exact-loss",
        steps = 4,
    ),
    dict(
        name = "leaves_before_the_end",
        file = "consumer.c",
        text = "        return 1; /* E10: events that the new buffer may lack are still here */",
        instead = "        (void)0;",
        property = "exact-loss",
        steps = 7,
    ),
    dict(
        name = "delivers_twice_after_a_switch",
        file = "consumer.c",
        text = "|| sequence > reader->last_sequence;",
        instead = "|| sequence >= reader->last_sequence;",
        property = "delivery-order",
        steps = 4,
    ),
    dict(
        name = "counter_read_late",
        file = "sleep.c",
        text = _CHECKS_AGAIN,
        instead = _CHECKS_AGAIN +
                  "    *counter = kmes_load_acquire_u32(reader->shared.futex_counter,\n" +
                  "                                     KMES_ORDER_SLEEP_COUNTER);\n",
        property = "sleep",
        steps = 10,
    ),
    dict(
        name = "need_wake_is_not_cleared",
        file = "sleep.c",
        text = "    if (reader->config.sharing == KMES_EXCLUSIVE)\n        kmes_store_relaxed_u8",
        instead = "    if (0)\n        kmes_store_relaxed_u8",
        property = "sleep",
        steps = 2,
    ),
    dict(
        name = "buffer_is_not_verified",
        file = "attach.c",
        text = "if (!kmes_mapping_is_same(&found->mapping, &now)) return 1;",
        instead = "",
        property = "sleep",
        steps = 4,
        also = ["bug-buffer-is-not-verified-foreign"],
    ),
]

# The headers that the edited file includes, for Bazel.
_PRIVATE_HEADERS = [
    "//kmes:guard.h",
    "//kmes:index.h",
    "//kmes:reader_parts.h",
]

def _planted_bug(plant):
    name = "planted_" + plant["name"]
    is_header = plant["file"].endswith(".h")
    scripts = [
        "//props/corpus:{}.kmes".format(script)
        for script in ["bug-" + plant["name"].replace("_", "-")] + plant.get("also", [])
    ]

    # A header is edited for the file that includes it.
    native.genrule(
        name = name + "_source",
        srcs = ["//kmes:" + plant["file"]] + (["//kmes:producer.c"] if is_header else []),
        outs = [name + ".c"],
        cmd = "python3 $(location edit.py) $@ '{}' '{}' $(SRCS)".format(
            plant["text"].replace("\n", "\\n"),
            plant["instead"].replace("\n", "\\n"),
        ),
        tools = ["edit.py"],
        testonly = True,
    )
    cc_library(
        name = name + "_core",
        testonly = True,
        srcs = [name + ".c"] + _PRIVATE_HEADERS,
        copts = KMES_C_COPTS + ["-fexceptions", "-Wno-unused-function"],
        deps = ["//kmes:core_hooked"],
        linkstatic = True,
        alwayslink = True,
    )
    cc_test(
        name = name + "_test",
        size = "small",
        args = [
            plant["name"],
            plant["property"],
            str(plant["steps"]),
        ] + ["$(location {})".format(script) for script in scripts],
        data = scripts,
        copts = KMES_CXX_COPTS,
        linkstatic = True,
        # This tests the properties, not the core.
        tags = ONE_CONFIGURATION,
        # The planted file comes first, so its functions take precedence.
        deps = [
            name + "_core",
            ":planted_main",
        ],
    )
    return name + "_test"

def planted_bugs(name):
    """A test for each planted bug, and a suite of them all."""
    native.test_suite(
        name = name,
        tests = [_planted_bug(plant) for plant in PLANTED],
    )
