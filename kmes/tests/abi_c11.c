// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * kmes/abi.h as freestanding C11, without extensions.
 */
#include "kmes/tests/abi_table.h"

const unsigned abi_table_c11[ABI_TABLE_ENTRIES] = ABI_TABLE;
