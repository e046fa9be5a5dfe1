/// Reads and writes of a variable's copies, by synchronization, aggregation and context (spec G.2, G.3).
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/comm/reduce_block.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/store.hpp>

namespace dist::detail {

/// True if the replicas' copies may have different values, so that reads outside replica functions aggregate them.
template <class Variable, class Context>
inline constexpr bool copies_may_differ =
    std::same_as<typename Variable::Synchronization, OnRead> && !StoreOf<Context>::shared;

/// Reduces all copies in all processes of the strategy into `reduced` by `Op`, in replica order. A collective call of
/// the processes.
template <class Op, class Variable, InCrossReplica Context, class T>
void reduce_copies(const Variable& variable, const Context& context, std::span<T> reduced) {
  const HostCopies copies{variable, context};
  const OperandsOfMembers<const std::byte*> operands{variable.copies(), variable.copies(), [&](std::size_t copy) {
                                                       return reinterpret_cast<const std::byte*>(copies[copy].data());
                                                     }};
  const auto& workers = context.strategy().workers();
  run_collectively(context.strategy(), [&] {
    reduce_with_members(workers, std::remove_cvref_t<decltype(workers)>::template record<T, Op>(), operands,
                        reduced.size(), reinterpret_cast<std::byte*>(reduced.data()));
  });
}

/// Outside replica functions: aggregates all copies into `aggregated`, in replica order. A collective call of the
/// processes of the strategy.
template <class Variable, InCrossReplica Context, class T>
void aggregate_copies(const Variable& variable, const Context& context, std::span<T> aggregated) {
  using Agg = typename Variable::Aggregation;
  static_assert(!std::same_as<Agg, None>,
                "an OnRead variable with aggregation None has no value outside replica functions: give it the "
                "aggregation Sum, Mean or OnlyFirstReplica, or read it in a replica function");
  if constexpr (std::same_as<Agg, Sum> || std::same_as<Agg, Mean>) {
    reduce_copies<Agg>(variable, context, aggregated);
  } else {
    copy_and_wait(variable.queue(context, 0), variable.component(context, 0), aggregated);
    run_collectively(context.strategy(), [&] { context.strategy().workers().broadcast(0, aggregated); });
  }
}

/// In a replica function: replaces this replica's `copy` by the aggregate of all copies. A collective call.
template <class Variable, InReplica Context, class T>
void aggregate_over_replicas(const Variable&, const Context& replica, std::span<T> copy) {
  using Agg = typename Variable::Aggregation;
  static_assert(
      !std::same_as<Agg, None>,
      "an OnRead variable with aggregation None has no synchronized value: give it the aggregation Sum, Mean or "
      "OnlyFirstReplica, or read the replica's own copy");
  if constexpr (std::same_as<Agg, OnlyFirstReplica>) {
    replica.collectives().broadcast(0, copy);
  } else if constexpr (!std::same_as<Agg, None>) {
    replica.collectives().all_reduce(Agg{}, copy);
  }
}

/// Requires an aggregation for writes in replica functions to a copy that replicas share (spec A19, G41).
template <class Context, class Agg>
constexpr void require_aggregation_of_shared_write() {
  static_assert(!StoreOf<Context>::shared || !std::same_as<Agg, None>,
                "a variable with aggregation None cannot be written in a replica function under a strategy such as "
                "CentralStorage, which keeps one copy: give the variable an aggregation, write same(value), or write "
                "outside replica functions");
}

template <class T, class Values, class Update>
struct UpdateElement {
  T* copy;
  Values given;
  Update update;
  DIST_HD void operator()(std::size_t i) const { copy[i] = update(copy[i], given[i]); }
};

/// Submits an update of a copy, or a part of it, to the queue of its device. Values in host memory that the device
/// cannot access are copied there first; then the update is done when this returns.
template <class Q, class Copy, class Values, class Update>
void update_elements(const Q& queue, Copy copy, const Values& given, Update update) {
  using T = typename Copy::element_type;
  if constexpr (std::same_as<Values, ::dist::SpanIn<const T, typename Q::Space>>) {
    queue.for_each({0, copy.size()}, UpdateElement<T, const T*, Update>{copy.data(), given.data(), update});
  } else if constexpr (Q::Space::host_accessible || std::same_as<Values, Uniform<T>>) {
    queue.for_each({0, copy.size()}, UpdateElement<T, Values, Update>{copy.data(), given, update});
  } else {
    AlignedBuffer<T> values(copy.size());
    const std::span<T> elements{values.data(), values.size()};
    if constexpr (!std::same_as<Update, Assign>) copy_and_wait(queue, copy, elements);
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = update(elements[i], given[i]);
    copy_and_wait(queue, elements, copy);
  }
}

/// Updates the elements of `range` in all copies, one block of values at a time, so that the values may be a view of a
/// copy. Device memory is updated in one block.
template <class Variable, InCrossReplica Context, class Values, class Update>
void update_every_copy(Variable& variable, const Context& context, IndexRange range, const Values& given,
                       Update update) {
  using T = typename Variable::Element;
  if constexpr (RemoteStore<StoreOf<Context>>) {
    StoreOf<Context>::write(context, variable, range, given, update);
    return;
  }
  if constexpr (!Variable::View::is_host_accessible) {
    for (std::size_t copy = 0; copy < variable.copies(); ++copy)
      update_elements(variable.queue(context, copy), variable.copy(context, copy).subspan(range.begin, range.size()),
                      given, update);
    return;
  }
  constexpr std::size_t block = 256;
  T values[block];
  for (std::size_t first = 0; first < range.size(); first += block) {
    const std::size_t count = std::min(block, range.size() - first);
    for (std::size_t i = 0; i < count; ++i) values[i] = given[first + i];
    for (std::size_t copy = 0; copy < variable.copies(); ++copy)
      update_elements(variable.queue(context, copy), variable.copy(context, copy).subspan(range.begin + first, count),
                      static_cast<const T*>(values), update);
  }
}

/// Throws InvalidArgument unless every element is divisible by the number of replicas: an integer remainder would be
/// lost.
template <class T, class Values, class Wide>
void require_divisible([[maybe_unused]] const Values& given, [[maybe_unused]] const auto& variable,
                       [[maybe_unused]] Wide replicas) {
  if constexpr (!Floating<T>) {
    const std::size_t different = std::same_as<Values, Uniform<T>> ? 1 : variable.size();
    for (std::size_t i = 0; i < different; ++i)
      if (static_cast<Wide>(T{given[i]}) % replicas != Wide{0})
        throw InvalidArgument(
            concat("Variable '", variable.name(),
                   "' cannot be assigned a total that is not divisible by the number of replicas"),
            concat("it is an OnRead sum of integers, ", +given[i], " is not a multiple of ", replicas),
            "Assign a multiple, such as 0, add in a replica function, or give the variable a floating-point type");
  }
}

/// Outside replica functions: writes the value to every copy; for an OnRead Sum, an equal share of it.
template <class Variable, InCrossReplica Context, class Values, class Update>
void write(Variable& variable, const Context& context, const Values& given, Update update) {
  using T = typename Variable::Element;
  const IndexRange all{0, variable.size()};
  constexpr bool shared_out = copies_may_differ<Variable, Context> && std::same_as<typename Variable::Aggregation, Sum>;
  if constexpr (shared_out) {
    static_assert(
        std::same_as<Update, Assign>,
        "an OnRead variable with aggregation Sum takes no assign_add or assign_sub outside replica functions: "
        "each copy holds an unknown share of the sum; add in a replica function, or assign the total");
    // The number of replicas may not fit into a small integer type.
    using Wide = std::conditional_t<Floating<T>, Accumulator<T>,
                                    std::conditional_t<std::signed_integral<T>, long long, unsigned long long>>;
    const auto replicas = static_cast<Wide>(context.num_replicas_in_sync());
    require_divisible<T>(given, variable, replicas);
    if constexpr (RemoteStore<StoreOf<Context>>)
      update_every_copy(variable, context, all, given, update);  // of a single replica
    else
      update_every_copy(variable, context, all, given, AssignShare<Wide>{replicas});
  } else {
    update_every_copy(variable, context, all, given, update);
  }
}

/// In the function of `strategy.update`: writes to that copy.
template <class Variable, InUpdate Context, class Values, class Update>
void write(Variable& variable, const Context& context, const Values& given, Update update) {
  update_elements(variable.queue(context), variable.component(context), given, update);
}

/// In a replica function: writes a value that is the same on all replicas.
template <class Variable, InReplica Context, class Values, class Update>
void write_same(Variable& variable, const Context& replica, const Values& given, Update update) {
  StoreOf<Context>::once(replica,
                         [&] { update_elements(variable.queue(replica), variable.component(replica), given, update); });
}

template <class T>
[[nodiscard]] Uniform<T> part_of(const Uniform<T>& given, IndexRange) {
  return given;
}
template <class T>
[[nodiscard]] const T* part_of(T* given, IndexRange part) {
  return given + part.begin;
}

/// In a replica function: writes the aggregate of `given` to every copy, elementwise or one number for all elements.
template <class Variable, InReplica Context, class T, class Values, class Update>
void write_aggregate_of(Variable& variable, const Context& replica, std::span<T> aggregated, const Values& given,
                        Update update) {
  const auto mine = variable.component(replica);
  replica.collectives().all_reduce(typename Variable::Aggregation{}, aggregated);
  StoreOf<Context>::share_out(replica, mine.size(), [&](IndexRange part) {
    update_elements(variable.queue(replica), mine.subspan(part.begin, part.size()), part_of(given, part), update);
  });
}

template <class Variable, InReplica Context, class T, class Update>
void write_aggregated(Variable& variable, const Context& replica, Uniform<T> given, Update update) {
  write_aggregate_of(variable, replica, std::span<T>{&given.number, 1}, given, update);
}

/// Writes the aggregate of the replicas' tensors. Each replica combines a shard, writes it to its copy and copies it to
/// the others, without temporary memory. A few elements, and host tensors for devices that cannot access them, are
/// combined on every replica.
template <class Variable, InReplica Context, class T, class Update>
void write_aggregated(Variable& variable, const Context& replica, std::span<const T> given, Update update) {
  constexpr std::size_t few = 64;
  if (given.size() <= few) {
    T aggregated[few];
    std::copy(given.begin(), given.end(), aggregated);
    write_aggregate_of(variable, replica, std::span<T>{aggregated, given.size()}, static_cast<const T*>(aggregated),
                       update);
  } else if constexpr (!Variable::View::is_host_accessible) {
    AlignedBuffer<T> aggregated(given.size());
    std::copy(given.begin(), given.end(), aggregated.data());
    write_aggregate_of(variable, replica, std::span<T>{aggregated.data(), aggregated.size()},
                       static_cast<const T*>(aggregated.data()), update);
  } else {
    replica.collectives().reduce_and_apply(typename Variable::Aggregation{}, given, variable.component(replica),
                                           WriteElement<Update>{update});
  }
}

/// Writes the aggregate of the replicas' elements in device memory.
template <class Variable, InReplica Context, class T, MemorySpace Where, class Update>
void write_aggregated(Variable& variable, const Context& replica, DeviceSpan<const T, Where> given, Update update) {
  replica.collectives().reduce_and_apply(typename Variable::Aggregation{}, given, variable.component(replica),
                                         WriteElement<Update>{update});
}

/// In a replica function: writes this replica's value to its own copy, or the aggregate to every copy.
template <class Variable, InReplica Context, class Values, class Update>
void write(Variable& variable, const Context& replica, const Values& given, Update update) {
  using Agg = typename Variable::Aggregation;
  require_aggregation_of_shared_write<Context, Agg>();
  if constexpr (std::same_as<Agg, None> || copies_may_differ<Variable, Context>) {
    update_elements(variable.queue(replica), variable.component(replica), given, update);
  } else if constexpr (std::same_as<Agg, OnlyFirstReplica>) {
    StoreOf<Context>::from_first(replica, variable.component(replica),
                                 [&](auto copy) { update_elements(variable.queue(replica), copy, given, update); });
  } else {
    write_aggregated(variable, replica, given, update);
  }
}

/// Writes `value` to `variable` by the rules of the context.
template <class Variable, class Context, class Value, class Update>
void write_value(Variable& variable, const Context& context, const Value& value, Update update) {
  if constexpr (require_update_of<typename Variable::Element, Update>()) {
    const auto given = given_to(variable, value);
    if constexpr (RemoteStore<StoreOf<Context>> && InReplica<Context> && !copies_may_differ<Variable, Context>) {
      StoreOf<Context>::write(context, variable, IndexRange{0, variable.size()}, given, update);
    } else if constexpr (is_same_value<Value> && InReplica<Context>) {
      require_same_is_not_summed<!copies_may_differ<Variable, Context> &&
                                 std::same_as<typename Variable::Aggregation, Sum>>();
      write_same(variable, context, given, update);
    } else {
      write(variable, context, given, update);
    }
  }
}

/// Corrects rounding errors in means: clamps them to the range of the copies, so that the mean of equal copies is their
/// value.
template <class Variable, InCrossReplica Context, class T>
void clamp_to_copies(const Variable& variable, const Context& context, std::span<T> means) {
  Tensor<T> least{variable.shape()}, most{variable.shape()};
  reduce_copies<Min>(variable, context, least.elements());
  reduce_copies<Max>(variable, context, most.elements());
  for (std::size_t i = 0; i < means.size(); ++i) means[i] = std::clamp(means[i], least[i], most[i]);
}

/// See DistributedVariable::whole.
template <class Variable, InCrossReplica Context>
[[nodiscard]] auto whole(const Variable& variable, const Context& context) {
  using T = typename Variable::Element;
  using Agg = typename Variable::Aggregation;
  if constexpr (RemoteStore<StoreOf<Context>>) {
    return Tensor<T>{TensorView<const T>{variable.copy(context, 0).data(), variable.shape()}};
  } else if constexpr (is_on_shard<typename Variable::Synchronization>) {
    return OwnerStore::whole(variable, context);
  } else {
    Tensor<T> all{variable.shape()};
    copy_and_wait(variable.queue(context, 0), variable.component(context, 0), all.elements());
    if constexpr (std::same_as<Agg, None>) {
      run_collectively(context.strategy(), [&] { context.strategy().workers().broadcast(0, all.elements()); });
    } else if constexpr (copies_may_differ<Variable, Context>) {
      aggregate_copies(variable, context, all.elements());
      if constexpr (std::same_as<Agg, Mean>) clamp_to_copies(variable, context, all.elements());
    }
    return all;
  }
}

/// See DistributedVariable::restore.
template <class Variable, InCrossReplica Context, class Values>
void restore(Variable& variable, const Context& context, const Values& given) {
  if constexpr (RemoteStore<StoreOf<Context>>) {
    update_every_copy(variable, context, IndexRange{0, variable.size()}, given, Assign{});
  } else if constexpr (is_on_shard<typename Variable::Synchronization>) {
    OwnerStore::restore(variable, context, given);
  } else if constexpr (copies_may_differ<Variable, Context> && std::same_as<typename Variable::Aggregation, Sum>) {
    // The shares of a sum would not always add up to it.
    using T = typename Variable::Element;
    for (std::size_t copy = 0; copy < variable.copies(); ++copy) {
      const auto queue = variable.queue(context, copy);
      if (copy == 0 && context.strategy().is_chief())
        update_elements(queue, variable.copy(context, copy), given, Assign{});
      else
        queue.fill(variable.copy(context, copy), T{});
      queue.wait();
    }
  } else {
    update_every_copy(variable, context, IndexRange{0, variable.size()}, given, Assign{});
  }
}

}  // namespace dist::detail
