// SPDX-License-Identifier: MIT
//
// The functions of fmt that its headers only declare, for an executable without shared libraries.
#include <fmt/format-inl.h>

// The headers declare these two with `extern template`, or leave them to this file.
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(
    fmt::detail::locale_ref);
template char fmt::detail::decimal_point_impl<char>(fmt::detail::locale_ref);
