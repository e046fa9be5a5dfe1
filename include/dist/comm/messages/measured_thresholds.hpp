#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/algorithm_thresholds.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// The seconds of an all-reduce of so many bytes by each algorithm, in the order of MessageAlgorithm.
struct MeasuredAlgorithms {
  std::size_t bytes = 0;
  std::array<double, 3> seconds{};
};

/// The thresholds that follow from measurements of growing sizes: a tree as long as it is the fastest from the smallest
/// size on, then halving and doubling as long as a ring is not faster. Each holds up to the last size that was measured.
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

/// Measures the algorithms between the members of `comm`, each with 1 KiB, 16 KiB, 256 KiB and 4 MiB, of which the
/// fastest of three counts; `clock()` gives the seconds since some time. A member's times are those of the slowest one,
/// so all members get the same thresholds. A measurement may differ from run to run, and with it the order of a sum and
/// its last bits. A collective call.
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
