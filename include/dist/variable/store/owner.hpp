#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/aligned_buffer.hpp>
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
    constexpr bool is_here = Variable::View::is_host_accessible;
    context.strategy().run([&](auto& replica) {
      const auto copy = variable.component(replica);
      AlignedBuffer<T> staged(is_here ? 0 : variable.size());
      std::vector<bool> is_staged(staged.size());
      Tensor<T> passed{variable.shape()};  // what the owners tell the others, who have no use for it
      const std::span<T> elements = passed.elements();
      Variable::Synchronization::update_shards(replica, std::span<const T>{elements}, elements,
                                               [&](std::size_t i, T element, T) {
                                                 if constexpr (is_here) {
                                                   copy[i] = given[i];
                                                 } else {
                                                   staged.data()[i] = given[i];
                                                   is_staged[i] = true;
                                                 }
                                                 return element;
                                               });
      if constexpr (!is_here) {
        const auto queue = variable.queue(replica);
        for (std::size_t end = 0; end < staged.size();) {  // runs of what is its own: others own the rest
          const std::size_t begin = end;
          while (end < staged.size() && is_staged[end] == is_staged[begin]) ++end;
          if (is_staged[begin])
            queue.copy(std::span<const T>{staged.data() + begin, end - begin}, copy.subspan(begin, end - begin));
        }
        queue.wait();
      }
    });
  }
};

}  // namespace dist
