#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist {

namespace detail {

/// Throws CollectiveMismatch unless all workers create a variable with the same shape and name.
template <class Workers>
void require_same_on_all_workers([[maybe_unused]] const Workers& workers, [[maybe_unused]] const Shape& shape,
                                 [[maybe_unused]] const std::string& name) {
  if constexpr (!CollectivesOfOne<Workers>) {
    struct Identity {
      Shape shape;
      std::size_t length;
      char name[100];  // truncated to this length
    };
    Identity mine{shape, name.size(), {}};
    name.copy(mine.name, sizeof(mine.name) - 1);
    PerReplica<Identity> all(workers.communicator().size());
    workers.all_gather_values("variable", mine, std::span<Identity>{all.begin(), all.size()});
    for (std::size_t worker = 1; worker < all.size(); ++worker)
      if (all[worker].shape != all[0].shape || all[worker].length != all[0].length ||
          std::string_view{all[worker].name} != all[0].name)
        throw CollectiveMismatch(
            "The workers did not make the same variable",
            concat("worker 0 made '", all[0].name, "' of shape ", to_string(all[0].shape), ", worker ", worker, " '",
                   all[worker].name, "' of shape ", to_string(all[worker].shape)),
            "Make the same variables in the same order on every worker");
  }
}

/// Throws CollectiveMismatch unless all replica threads pass the same shape and name.
template <class Shapes, class Names>
void require_same_on_all_replicas([[maybe_unused]] const Shapes& shapes, [[maybe_unused]] const Names& names) {
  if constexpr (is_per_replica<Shapes>) {
    for (std::size_t replica = 1; replica < shapes.size(); ++replica)
      if (shapes[replica] != shapes[0] || names[replica] != names[0])
        throw CollectiveMismatch("The replicas did not make the same variable",
                                 concat("replica 0 made '", names[0], "' of shape ", to_string(shapes[0]), ", replica ",
                                        replica, " '", names[replica], "' of shape ", to_string(shapes[replica])),
                                 "Make the same variables in the same order on every replica");
  }
}

template <class Workers, class Variable, class T, class Initial>
void make_first(const Workers& workers, const Variable& made, std::span<T> elements, Initial& initial) {
  if constexpr (std::convertible_to<const Initial&, TensorView<const T>> ||
                NumbersFor<std::remove_cvref_t<Initial>, T>) {
    const auto values = given_to(made, initial);
    std::copy_n(values.data(), values.size(), elements.data());
  } else {
    require_host_access<MemorySpaceOf<Initial>>();
    constexpr bool fills = is_function_of<std::remove_reference_t<Initial>, TensorView<T>>();
    static_assert(fills || is_on_device<std::remove_cvref_t<Initial>>,
                  "a variable's initial value must be a number, a TensorView of its element type, a contiguous range "
                  "of numbers "
                  "of that type, or a function that fills a TensorView of it");
    if constexpr (fills) initial(TensorView<T>{elements, made.shape()});
  }
  workers.broadcast(0, elements);
}

template <class Variable, class S, class Initial>
void initialise(const CrossReplicaContext<S>& scope, const Variable& made, Initial& initial) {
  using T = typename Variable::Element;
  S& strategy = scope.strategy();
  const auto& workers = strategy.workers();
  require_same_on_all_workers(workers, made.shape(), made.name());
  if constexpr (Reducible<std::remove_cvref_t<Initial>>) {
    T element = to_element<T>(initial, made.name());
    workers.broadcast(0, std::span<T>{&element, 1});
    // Memory is already zeroed, so leave its pages untouched. -0.0 equals zero, but has other bytes.
    if (const T zero{}; std::memcmp(&element, &zero, sizeof(T)) == 0) return;
    if constexpr (Variable::View::is_host_accessible) {
      made.fill(std::as_bytes(std::span<const T>{&element, 1}));
    } else {
      const auto queue = made.queue(scope, 0);
      queue.fill(made.copy(scope), element);
      queue.wait();
    }
  } else if constexpr (Variable::View::is_host_accessible) {
    make_first(workers, made, made.copy(scope), initial);
  } else {
    AlignedBuffer<T> staged(made.size());
    const std::span<T> elements{staged.data(), staged.size()};
    make_first(workers, made, elements, initial);
    copy_and_wait(made.queue(scope, 0), elements, made.copy(scope));
  }
  S::Store::spread(strategy, made, run_here.strategy == &strategy);
}

/// A collective call of the processes.
template <class Variable, class S, class Memory, class Initial>
[[nodiscard]] Variable make_variable(const CrossReplicaContext<S>& scope, const Memory& memory, const Shape& shape,
                                     Initial& initial, std::string name, Trainable trainable) {
  return run_collectively(scope.strategy(), [&] {
    Variable made{memory, shape, std::move(name), trainable};
    initialise(scope, made, initial);
    return made;
  });
}

/// The synchronization and aggregation among two policies, in any order, by default OnWrite and None.
template <class First = OnWrite, class Second = std::conditional_t<Synchronization<First>, None, OnWrite>>
struct VariablePolicies {
  static constexpr bool in_order = dist::Synchronization<First>;
  static_assert(in_order != dist::Synchronization<Second>,
                "a variable has one synchronization, OnWrite or OnRead, and one aggregation: None, Sum, Mean or "
                "OnlyFirstReplica");
  using Synchronization = std::conditional_t<in_order, First, Second>;
  using Aggregation = std::conditional_t<in_order, Second, First>;
};

}  // namespace detail

/// Creates a variable like `strategy.variable`, which generic code calls without `.template`, with policies in any
/// order: `dist::variable<float, dist::Sum, dist::OnRead>(strategy, {2}, values, "total")`.
template <class T, class... Policies, Strategy S, class Initial = T>
[[nodiscard]] auto variable(S& strategy, Shape shape, Initial&& initial = T{}, std::string name = "Variable",
                            Trainable trainable = Trainable::by_synchronization) {
  static_assert(sizeof...(Policies) <= 2, "a variable has two policies: one synchronization and one aggregation");
  using Chosen = detail::VariablePolicies<Policies...>;
  return strategy.template variable<T, typename Chosen::Synchronization, typename Chosen::Aggregation>(
      shape, std::forward<Initial>(initial), std::move(name), trainable);
}
/// Creates one variable for all replicas, in a replica function (spec B15).
template <class T, class... Policies, InReplica Context, class Initial = T>
[[nodiscard]] auto variable(const Context& replica, Shape shape, Initial&& initial = T{}, std::string name = "Variable",
                            Trainable trainable = Trainable::by_synchronization) {
  using Chosen = detail::VariablePolicies<Policies...>;
  return replica.strategy().template variable<T, typename Chosen::Synchronization, typename Chosen::Aggregation>(
      replica, shape, std::forward<Initial>(initial), std::move(name), trainable);
}

}  // namespace dist
