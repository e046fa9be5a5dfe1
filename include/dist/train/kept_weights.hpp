#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/context/cross_replica_context.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>

namespace dist::nn::detail {

/// What a network had learnt at some time, in the host's memory.
class KeptWeights {
 public:
  [[nodiscard]] bool is_empty() const noexcept { return tensors_.empty(); }

  /// A collective call of the processes.
  template <Trackable Network>
  void keep(const InCrossReplica auto& scope, Network& network) {
    tensors_.clear();
    walk(network, [&](std::string_view, auto& leaf) {
      auto whole = leaf.whole(scope);
      tensors_.push_back(std::make_shared<const decltype(whole)>(std::move(whole)));
    });
  }
  /// Gives it back to the same network. A collective call of the processes.
  template <Trackable Network>
  void restore(const InCrossReplica auto& scope, Network& network) const {
    std::size_t next = 0;
    walk(network, [&](std::string_view, auto& leaf) {
      using Whole = decltype(leaf.whole(scope));
      leaf.restore(scope, static_cast<const Whole*>(tensors_[next++].get())->view());
    });
  }

 private:
  std::vector<std::shared_ptr<const void>> tensors_;  // in the order of the walk
};

}  // namespace dist::nn::detail
