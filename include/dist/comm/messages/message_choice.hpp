#pragma once

#include <cstddef>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/algorithm_thresholds.hpp>
#include <dist/comm/messages/declarations.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/message_collectives.hpp>
#include <dist/comm/messages/message_ring.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>

namespace dist::detail {

/// An algorithm of MessageCollectives that chooses one of three by the number of bytes. All have the same shards, so
/// the halves of an update may use different ones.
template <class C>
class MessageChoice : public ReducesByRecords {
 public:
  using Settings = AlgorithmThresholds;
  [[nodiscard]] static Settings usual_settings(std::size_t members) noexcept {
    return thresholds_for(usual_costs, members);
  }

  MessageChoice(const C& comm, const AlgorithmThresholds& thresholds) : comm_(comm), thresholds_(thresholds) {}

  void broadcast(std::size_t root, Elements values) const {
    with_chosen(values.count() * values.size(), [&](const auto& chosen) { chosen.broadcast(root, values); });
  }
  void gather(Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    with_chosen(all.count() * all.size(), [&](const auto& chosen) { chosen.gather(all, part); });
  }
  void all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const {
    with_chosen(values.size(), [&](const auto& chosen) { chosen.all_reduce_bytes(reduction, values); });
  }
  void reduce_scatter(const Reduction& reduction, std::span<const std::byte> values, UseReduced use) const {
    with_chosen(values.size(), [&](const auto& chosen) { chosen.reduce_scatter(reduction, values, use); });
  }

 private:
  template <class Call>
  void with_chosen(std::size_t bytes, Call&& call) const {
    switch (thresholds_.choose(bytes)) {
      case MessageAlgorithm::tree:
        return call(MessageTree<C>{comm_});
      case MessageAlgorithm::halving_doubling:
        return call(MessageDoubling<C>{comm_});
      case MessageAlgorithm::ring:
        return call(MessageRing<C>{comm_});
    }
  }

  const C& comm_;
  const AlgorithmThresholds& thresholds_;
};

}  // namespace dist::detail
