#!/bin/bash -eu
# SPDX-License-Identifier: MIT
#
# What ClusterFuzzLite and OSS-Fuzz call in their container, in the folder of the clone.
exec "$SRC/kmes/fuzz/build.sh"
