#pragma once

#include <bit>
#include <cstddef>

namespace dist {

/// What messages cost between members, in seconds: the alpha-beta-gamma model (Thakur, Rabenseifner, Gropp: "Optimization
/// of Collective Communication Operations in MPICH", IJHPCA 19(1), 2005, section 3.1). A message of n bytes takes
/// `latency` + n `per_byte`; a member sends one message and receives one at a time, both at once.
struct MessageCosts {
  double latency = 0;           ///< alpha: of a message
  double per_byte = 0;          ///< beta: of a byte of a message
  double per_reduced_byte = 0;  ///< gamma: of a byte that is combined with another one
  double per_copied_byte = 0;   ///< kappa: of a byte that is copied in memory, which the formulas below leave out
};

namespace detail {

/// The least number of rounds after which all of so many members may know of one, where those that know double in each:
/// log2(members), rounded up.
[[nodiscard]] constexpr std::size_t doubling_rounds(std::size_t members) noexcept {
  return static_cast<std::size_t>(std::bit_width(members - 1));
}

}  // namespace detail

/// The time of an all-reduce of n bytes of each of p members in a ring: p - 1 steps reduce and p - 1 gather, each with
/// n / p bytes: 2 (p - 1) alpha + 2 n (p - 1) / p beta + n (p - 1) / p gamma.
[[nodiscard]] constexpr double ring_seconds(const MessageCosts& costs, std::size_t bytes, std::size_t members) {
  const auto steps = static_cast<double>(members - 1);
  const double passed = static_cast<double>(bytes) * steps / static_cast<double>(members);
  return 2 * steps * costs.latency + 2 * passed * costs.per_byte + passed * costs.per_reduced_byte;
}

/// The time by recursive halving and doubling: the bytes of a ring in ceil(log2(p)) rounds each way:
/// 2 ceil(log2(p)) alpha + 2 n (p - 1) / p beta + n (p - 1) / p gamma.
[[nodiscard]] constexpr double halving_doubling_seconds(const MessageCosts& costs, std::size_t bytes,
                                                        std::size_t members) {
  const auto rounds = static_cast<double>(detail::doubling_rounds(members));
  const double passed = static_cast<double>(bytes) * static_cast<double>(members - 1) / static_cast<double>(members);
  return 2 * rounds * costs.latency + 2 * passed * costs.per_byte + passed * costs.per_reduced_byte;
}

/// The time in a binomial tree: all values go up to its root, and down again:
/// ceil(log2(p)) (2 alpha + 2 n beta + n gamma).
[[nodiscard]] constexpr double tree_seconds(const MessageCosts& costs, std::size_t bytes, std::size_t members) {
  const auto rounds = static_cast<double>(detail::doubling_rounds(members));
  return rounds * (2 * costs.latency + static_cast<double>(bytes) * (2 * costs.per_byte + costs.per_reduced_byte));
}

}  // namespace dist
