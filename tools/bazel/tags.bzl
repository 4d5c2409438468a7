# SPDX-License-Identifier: MIT
"""Tags that tests share."""

# For a test whose result does not depend on the configuration, or that has flags of its own: it
# runs in the default configuration only.
ONE_CONFIGURATION = [
    "no-asan",
    "no-tsan",
    "no-ubsan",
]

# For a long test that `tools/kmes test` runs every second day if it runs several parts
# (tools/lib/today.sh). Not for a test with KMES_SHARE in its `env`.
ONE_DAY_IN_TWO = ["one-day-in-two"]
