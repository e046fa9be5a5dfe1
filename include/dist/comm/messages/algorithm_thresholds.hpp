#pragma once

#include <cstddef>
#include <limits>

#include <dist/comm/messages/message_costs.hpp>

namespace dist {

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
