#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist::detail {

/// A thread's name as the system keeps it: at most 15 characters, which debuggers, `top -H` and traces show.
using ThreadName = std::array<char, 16>;

/// Longer names are cut.
void name_this_thread(std::string_view name) noexcept;
[[nodiscard]] ThreadName name_of_this_thread() noexcept;

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/core/thread_name.ipp>
#endif
