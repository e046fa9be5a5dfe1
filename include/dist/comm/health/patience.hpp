#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>

namespace dist::detail {

/// Longer than `timeout` by `patience` times 5 s, or times itself where that is shorter: for members that wait for what
/// happens between others, so that those that know best who is missing are the first to say so.
[[nodiscard]] constexpr std::chrono::nanoseconds longer(std::chrono::nanoseconds timeout, int patience) noexcept {
  const auto slack = patience * std::min<std::chrono::nanoseconds>(timeout, std::chrono::seconds{5});
  return slack < std::chrono::nanoseconds::max() - timeout ? timeout + slack : std::chrono::nanoseconds::max();
}

}  // namespace dist::detail
