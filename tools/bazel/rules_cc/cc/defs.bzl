# SPDX-License-Identifier: MIT
"""The C++ rules under the names that BUILD files load: the ones built into Bazel 4.2."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
fdo_prefetch_hints = native.fdo_prefetch_hints
fdo_profile = native.fdo_profile
objc_import = native.objc_import
objc_library = native.objc_library
cc_flags_supplier = native.cc_library
compiler_flag = native.cc_library
