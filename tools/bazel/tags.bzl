# SPDX-License-Identifier: MIT
"""Tags that tests share."""

# For a test whose result does not depend on the configuration, or that has flags of its own: it
# runs in the default configuration only.
ONE_CONFIGURATION = [
    "no-asan",
    "no-tsan",
    "no-ubsan",
]
