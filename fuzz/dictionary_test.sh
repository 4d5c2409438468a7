#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# dictionary_test.sh MAKE_DICTIONARY FILE: the dictionary has every word of the grammar, and no
# other.
exec "$1" "$2"
