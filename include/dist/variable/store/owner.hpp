#pragma once

#include <cstddef>
#include <span>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist {

/// How OnShard variables are kept under any strategy, whatever its own store: each element in the memory of the one
/// replica that owns it. What lies at that place in the memory of the others is nobody's.
struct OwnerStore {
  /// The elements of all owners, in a replica function. A collective call.
  template <class Variable>
  [[nodiscard]] static auto gathered(const Variable& variable, const InReplica auto& replica) {
    using T = typename Variable::Element;
    Tensor<T> all{variable.shape()};
    detail::HostCopy mine{variable, replica};
    Variable::Synchronization::update_shards(replica, std::span<const T>{mine.elements()}, all.elements(),
                                             [](std::size_t, T, T owned) { return owned; });
    return all;
  }
  /// The same outside, where all processes call it.
  template <class Variable>
  [[nodiscard]] static auto whole(const Variable& variable, const InCrossReplica auto& context) {
    Tensor<typename Variable::Element> all{Shape{0}};
    context.strategy().run([&](auto& replica) {
      auto gathered_here = gathered(variable, replica);
      if (replica.local_index() == 0) all = std::move(gathered_here);
    });
    return all;
  }
  /// Gives every owner its elements of `given`, and touches no others. All processes call it.
  template <class Variable, class Values>
  static void restore(const Variable& variable, const InCrossReplica auto& context, const Values& given) {
    using T = typename Variable::Element;
    context.strategy().run([&](auto& replica) {
      detail::HostCopy copy{variable, replica};
      const std::span<T> mine = copy.elements();
      Tensor<T> passed{variable.shape()};  // what the owners tell the others, who have no use for it
      const std::span<T> elements = passed.elements();
      Variable::Synchronization::update_shards(replica, std::span<const T>{elements}, elements,
                                               [&](std::size_t i, T element, T) {
                                                 mine[i] = given[i];
                                                 return element;
                                               });
      copy.give_back();
    });
  }
};

}  // namespace dist
