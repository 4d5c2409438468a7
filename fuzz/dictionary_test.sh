#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# dictionary_test.sh MAKE_DICTIONARY FILE: the dictionary has exactly the words of the grammar.
exec "$1" "$2"
