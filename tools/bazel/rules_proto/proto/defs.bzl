# SPDX-License-Identifier: MIT
"""The protocol buffer rules that Bazel's own tools load; nothing of this project uses them."""

proto_lang_toolchain = native.proto_lang_toolchain
proto_library = native.proto_library
