#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/leaf.hpp>
#include <dist/context/contexts.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>

namespace dist::nn::detail {

/// A kept copy of a leaf of a network, as a leaf of a walk: the leaf itself while nothing is kept. Refers to both.
template <class Leaf>
class KeptLeaf {
 public:
  KeptLeaf(Leaf& leaf, std::shared_ptr<const void>& kept) : leaf_(leaf), kept_(kept) {}

  [[nodiscard]] decltype(auto) shape() const { return leaf_.shape(); }
  void require_restorable(const Shape& shape) const requires dist::detail::ChecksShape<Leaf> {
    leaf_.require_restorable(shape);
  }
  [[nodiscard]] auto whole(const InCrossReplica auto& scope) const {
    using Whole = decltype(leaf_.whole(scope));
    return kept_ == nullptr ? leaf_.whole(scope) : *static_cast<const Whole*>(kept_.get());
  }
  template <class Values>
  void restore(const InCrossReplica auto& scope, const Values& values) const {
    kept_ = std::make_shared<const decltype(leaf_.whole(scope))>(values);
  }

 private:
  Leaf& leaf_;
  std::shared_ptr<const void>& kept_;
};

/// What a network had learnt at some time, in the host's memory.
class KeptWeights {
 public:
  [[nodiscard]] bool is_empty() const noexcept { return !is_kept_; }

  /// A collective call of the processes.
  template <Trackable Network>
  void keep(const InCrossReplica auto& scope, Network& network) {
    tensors_.clear();
    walk(network, [&](std::string_view, auto& leaf) {
      auto whole = leaf.whole(scope);
      tensors_.push_back(std::make_shared<const decltype(whole)>(std::move(whole)));
    });
    is_kept_ = true;
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

  /// All of it, by the keys that the network has for its leaves. See Trackable.
  template <Trackable Network>
  void track(Network& network, auto& visit) {
    visit("is_kept", is_kept_);
    std::size_t next = 0;
    walk(network, [&](std::string_view key, auto& leaf) {
      if (next == tensors_.size()) tensors_.emplace_back();
      visit(key, KeptLeaf{leaf, tensors_[next++]});
    });
  }

 private:
  std::vector<std::shared_ptr<const void>> tensors_;  // in the order of the walk
  bool is_kept_ = false;
};

}  // namespace dist::nn::detail
