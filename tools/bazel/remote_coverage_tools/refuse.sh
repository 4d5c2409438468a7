#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs only under `bazel coverage`, which this tree does not support.
echo "bazel coverage: not supported here; coverage is measured with clang's own instrumentation" >&2
exit 1
