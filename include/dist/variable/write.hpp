/// How a write reaches the copies of a variable, by synchronization, aggregation and context (spec G.2, G.3).
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/read.hpp>

namespace dist::detail {

/// A copy that replicas share makes a write in a replica function a write for all (spec A19, G41).
template <class Context, class Agg>
constexpr void require_aggregation_of_shared_write() {
  static_assert(!StoreOf<Context>::shared || !std::same_as<Agg, None>,
                "a variable with aggregation None cannot be written in a replica function under a strategy such as "
                "CentralStorage, which keeps one copy: give the variable an aggregation, write same(value), or write "
                "outside replica functions");
}

/// One element after a write.
template <class T, class Values, class Update>
struct UpdateElement {
  T* copy;
  Values given;
  Update update;
  DIST_HD void operator()(std::size_t i) const { copy[i] = update(copy[i], given[i]); }
};

/// Puts the write of a copy, or a part of one, into the queue of its device. Values that lie in the host's memory go
/// there first where the device cannot reach them: the write is then done when this returns.
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

/// The elements of `range` in all copies, a block of the given values at a time, so that these may be a view of a copy.
/// Where the host cannot touch the copies they are no such view, and one block is all.
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

/// Throws InvalidArgument unless so many replicas can have equal shares of every element: of integers a remainder would
/// be lost.
template <class T, class Values, class Wide>
void require_divisible([[maybe_unused]] const Values& given, [[maybe_unused]] const auto& variable,
                       [[maybe_unused]] Wide replicas) {
  if constexpr (!Floating<T>) {
    const std::size_t different = std::same_as<Values, Uniform<T>> ? 1 : variable.size();
    for (std::size_t i = 0; i < different; ++i)
      if (static_cast<Wide>(T{given[i]}) % replicas != Wide{0})
        throw InvalidArgument(
            concat("Variable '", variable.name(), "' cannot be assigned a total that its replicas do not divide"),
            concat("it is an OnRead sum of integers, ", +given[i], " is not a multiple of ", replicas),
            "Assign a multiple, such as 0, add in a replica function, or give the variable a floating-point type");
  }
}

/// Outside replica functions: every copy takes the value; that of an OnRead sum is shared out among the copies.
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
    // The number of replicas may not fit a small integer type.
    using Wide = std::conditional_t<Floating<T>, Accumulator<T>,
                                    std::conditional_t<std::signed_integral<T>, long long, unsigned long long>>;
    const auto replicas = static_cast<Wide>(context.num_replicas_in_sync());
    require_divisible<T>(given, variable, replicas);
    if constexpr (RemoteStore<StoreOf<Context>>)
      update_every_copy(variable, context, all, given, update);  // of one replica
    else
      update_every_copy(variable, context, all, given, AssignShare<Wide>{replicas});
  } else {
    update_every_copy(variable, context, all, given, update);
  }
}

/// In the function of `strategy.update`: that one copy.
template <class Variable, InUpdate Context, class Values, class Update>
void write(Variable& variable, const Context& context, const Values& given, Update update) {
  update_elements(variable.queue(context), variable.component(context), given, update);
}

/// In a replica function, a value that all replicas give alike.
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

/// In a replica function, the aggregate of `given` to every copy: of all elements, or of one number for them.
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

/// The same of the tensors that they give. Each replica combines a share of them, writes it to its copy and copies that
/// to the others, so no memory is needed in between; a few elements are faster combined by everybody. So are tensors of
/// the host for a device that does not reach them.
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

/// The same of elements of the device's memory.
template <class Variable, InReplica Context, class T, MemorySpace Where, class Update>
void write_aggregated(Variable& variable, const Context& replica, DeviceSpan<const T, Where> given, Update update) {
  replica.collectives().reduce_and_apply(typename Variable::Aggregation{}, given, variable.component(replica),
                                         WriteElement<Update>{update});
}

/// In a replica function, this replica's value: kept to its own copy, or aggregated with those of the others.
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

/// Writes `value` to `variable` as the context says.
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

}  // namespace dist::detail
