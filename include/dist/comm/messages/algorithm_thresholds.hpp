#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// The costs of messages, in seconds: the alpha-beta-gamma model (Thakur, Rabenseifner, Gropp: "Optimization of
/// Collective Communication Operations in MPICH", IJHPCA 19(1), 2005, section 3.1). A message of n bytes takes
/// `latency` + n `per_byte`. A member can send and receive one message each at the same time.
struct MessageCosts {
  double latency = 0;           ///< alpha: per message
  double per_byte = 0;          ///< beta: per byte of a message
  double per_reduced_byte = 0;  ///< gamma: per byte combined with another one
  double per_copied_byte = 0;   ///< kappa: per copied byte; not part of the formulas below
};

namespace detail {

/// The minimum number of rounds to inform all members, if the informed ones double per round: log2(members), rounded
/// up.
[[nodiscard]] constexpr std::size_t doubling_rounds(std::size_t members) noexcept {
  return static_cast<std::size_t>(std::bit_width(members - 1));
}

}  // namespace detail

/// The time of an all-reduce of n bytes per member among p members in a ring: p - 1 steps to reduce and p - 1 to
/// gather, each with n / p bytes: 2 (p - 1) alpha + 2 n (p - 1) / p beta + n (p - 1) / p gamma.
[[nodiscard]] constexpr double ring_seconds(const MessageCosts& costs, std::size_t bytes, std::size_t members) {
  const auto steps = static_cast<double>(members - 1);
  const double passed = static_cast<double>(bytes) * steps / static_cast<double>(members);
  return 2 * steps * costs.latency + 2 * passed * costs.per_byte + passed * costs.per_reduced_byte;
}

/// The time of an all-reduce by recursive halving and doubling: the bytes of a ring in ceil(log2(p)) rounds each way: 2
/// ceil(log2(p)) alpha + 2 n (p - 1) / p beta + n (p - 1) / p gamma.
[[nodiscard]] constexpr double halving_doubling_seconds(const MessageCosts& costs, std::size_t bytes,
                                                        std::size_t members) {
  const auto rounds = static_cast<double>(detail::doubling_rounds(members));
  const double passed = static_cast<double>(bytes) * static_cast<double>(members - 1) / static_cast<double>(members);
  return 2 * rounds * costs.latency + 2 * passed * costs.per_byte + passed * costs.per_reduced_byte;
}

/// The time of an all-reduce in a binomial tree, up to the root and down again: ceil(log2(p)) (2 alpha + 2 n beta + n
/// gamma).
[[nodiscard]] constexpr double tree_seconds(const MessageCosts& costs, std::size_t bytes, std::size_t members) {
  const auto rounds = static_cast<double>(detail::doubling_rounds(members));
  return rounds * (2 * costs.latency + static_cast<double>(bytes) * (2 * costs.per_byte + costs.per_reduced_byte));
}

/// The algorithms between members that pass messages.
enum class MessageAlgorithm : unsigned char { tree, halving_doubling, ring };

/// The algorithm by number of bytes: a tree up to the first threshold, halving and doubling up to the second one, then
/// a ring. Bytes are counted per operand, or in the whole result of a gather. Must be the same on all members;
/// otherwise they wait for each other.
struct AlgorithmThresholds {
  std::size_t tree_up_to = 0;              ///< maximum bytes for a tree; 0: never
  std::size_t halving_doubling_up_to = 0;  ///< maximum bytes for halving and doubling; 0: never

  /// Returns the algorithm for `bytes` bytes.
  [[nodiscard]] constexpr MessageAlgorithm choose(std::size_t bytes) const noexcept {
    if (bytes <= tree_up_to && tree_up_to != 0) return MessageAlgorithm::tree;
    if (bytes <= halving_doubling_up_to && halving_doubling_up_to != 0) return MessageAlgorithm::halving_doubling;
    return MessageAlgorithm::ring;
  }
  friend constexpr bool operator==(const AlgorithmThresholds&, const AlgorithmThresholds&) = default;
};

/// The default costs of AutoAllReduce: 10 Gbit/s Ethernet with 10 us per message, and memory combined or copied at 10
/// GB/s.
inline constexpr MessageCosts usual_costs{
    .latency = 10e-6, .per_byte = 0.8e-9, .per_reduced_byte = 0.1e-9, .per_copied_byte = 0.1e-9};

/// Derives thresholds from the formulas. A ring and halving and doubling send and combine the same bytes. A ring has p
/// - 1 - ceil(log2(p)) more steps each way; halving and doubling copies all bytes into the order of its parts and back.
/// So both take the same time for (p - 1 - ceil(log2(p))) alpha / kappa bytes. A tree has as many steps as halving and
/// doubling and sends more, so only measurements can favour it.
[[nodiscard]] constexpr AlgorithmThresholds thresholds_for(const MessageCosts& costs, std::size_t members) noexcept {
  const std::size_t more_steps = members - 1 - detail::doubling_rounds(members);
  if (more_steps == 0) return {};
  constexpr auto all = std::numeric_limits<std::size_t>::max();
  const double bytes = static_cast<double>(more_steps) * costs.latency / costs.per_copied_byte;
  return {.tree_up_to = 0,
          .halving_doubling_up_to = bytes < static_cast<double>(all) ? static_cast<std::size_t>(bytes) : all};
}

/// Measured seconds of an all-reduce by each algorithm, in the order of MessageAlgorithm.
struct MeasuredAlgorithms {
  std::size_t bytes = 0;            ///< per member
  std::array<double, 3> seconds{};  ///< in the order of MessageAlgorithm
};

/// Derives thresholds from measurements, ascending in size: a tree while it is the fastest, then halving and doubling
/// while it is faster than a ring. Each threshold is the last such size.
[[nodiscard]] constexpr AlgorithmThresholds thresholds_from(std::span<const MeasuredAlgorithms> measured) noexcept {
  const auto seconds = [](const MeasuredAlgorithms& size, MessageAlgorithm algorithm) {
    return size.seconds[static_cast<std::size_t>(algorithm)];
  };
  AlgorithmThresholds thresholds;
  std::size_t at = 0;
  for (; at < measured.size(); ++at) {
    const double tree = seconds(measured[at], MessageAlgorithm::tree);
    if (!(tree < seconds(measured[at], MessageAlgorithm::halving_doubling)) ||
        !(tree < seconds(measured[at], MessageAlgorithm::ring)))
      break;
    thresholds.tree_up_to = measured[at].bytes;
  }
  for (; at < measured.size(); ++at) {
    if (!(seconds(measured[at], MessageAlgorithm::halving_doubling) < seconds(measured[at], MessageAlgorithm::ring)))
      break;
    thresholds.halving_doubling_up_to = measured[at].bytes;
  }
  return thresholds;
}

/// Measures the algorithms between the members of `comm` with 1 KiB, 16 KiB, 256 KiB and 4 MiB: the fastest of three
/// runs, on the slowest member, so that all get the same thresholds. `clock()` returns seconds since a fixed time.
/// Measurements, and with them the order of sums and their last bits, vary between runs. A collective call.
template <PassesMessages C, std::invocable Clock>
[[nodiscard]] AlgorithmThresholds measured_thresholds(const C& comm, Clock&& clock) {
  std::array<MeasuredAlgorithms, 4> sizes;
  std::vector<float> values;
  const auto fastest = [&](const auto& ops, std::size_t bytes) {
    values.assign(bytes / sizeof(float), 0);
    double least = 0;
    for (int round = 0; round < 3; ++round) {
      comm.barrier();
      const double begin = clock();
      ops.all_reduce(sum, std::span{values});
      const double seconds = clock() - begin;
      least = round == 0 ? seconds : std::min(least, seconds);
    }
    return least;
  };
  std::size_t bytes = std::size_t{1} << 10;
  for (MeasuredAlgorithms& size : sizes) {
    size = {bytes,
            {fastest(TreeAllReduce::On<C>{comm}, bytes), fastest(HalvingDoublingAllReduce::On<C>{comm}, bytes),
             fastest(RingAllReduce::On<C>{comm}, bytes)}};
    RingAllReduce::On<C>{comm}.all_reduce(max, std::span<double>{size.seconds});
    bytes *= 16;
  }
  return thresholds_from(sizes);
}

}  // namespace dist
