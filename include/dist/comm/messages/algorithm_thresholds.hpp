#pragma once

#include <bit>
#include <cstddef>
#include <limits>

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

/// The algorithms between members that pass messages.
enum class MessageAlgorithm : unsigned char { tree, halving_doubling, ring };

/// Which algorithm moves how many bytes: up to the first number of them a tree, up to the second one halving and doubling,
/// above that a ring. The bytes are those of a member's operand, or of all that a gather collects. The same on all
/// members, or they would wait for each other.
struct AlgorithmThresholds {
  std::size_t tree_up_to = 0;
  std::size_t halving_doubling_up_to = 0;

  [[nodiscard]] constexpr MessageAlgorithm choose(std::size_t bytes) const noexcept {
    if (bytes <= tree_up_to && tree_up_to != 0) return MessageAlgorithm::tree;
    if (bytes <= halving_doubling_up_to && halving_doubling_up_to != 0) return MessageAlgorithm::halving_doubling;
    return MessageAlgorithm::ring;
  }
  friend constexpr bool operator==(const AlgorithmThresholds&, const AlgorithmThresholds&) = default;
};

/// The costs for which AutoAllReduce chooses where it is told nothing: 10 Gbit/s Ethernet, whose messages take 10 us, and
/// memory that is combined or copied at 10 GB/s.
inline constexpr MessageCosts usual_costs{
    .latency = 10e-6, .per_byte = 0.8e-9, .per_reduced_byte = 0.1e-9, .per_copied_byte = 0.1e-9};

/// What the formulas say for so many members. A ring and halving and doubling send and combine the same bytes. A ring has
/// p - 1 - ceil(log2(p)) steps more each way; halving and doubling copies all bytes into the order of its parts and back.
/// So they take the same time for (p - 1 - ceil(log2(p))) alpha / kappa bytes, where kappa is the time to copy one. A
/// tree has as many steps as halving and doubling and sends more: the formulas never choose it, measurements may.
[[nodiscard]] constexpr AlgorithmThresholds thresholds_for(const MessageCosts& costs, std::size_t members) noexcept {
  const std::size_t more_steps = members - 1 - detail::doubling_rounds(members);
  if (more_steps == 0) return {};
  constexpr auto all = std::numeric_limits<std::size_t>::max();
  const double bytes = static_cast<double>(more_steps) * costs.latency / costs.per_copied_byte;
  return {.tree_up_to = 0,
          .halving_doubling_up_to = bytes < static_cast<double>(all) ? static_cast<std::size_t>(bytes) : all};
}

}  // namespace dist
