#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/variable/cached_reads.hpp>
#include <dist/variable/copies.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/scatter.hpp>
#include <dist/variable/store.hpp>
#include <dist/variable/variable_core.hpp>

namespace dist {

namespace detail {
/// The default context, for a readable error if a call omits the context.
template <class Argument>
struct NoContext {};

/// A context of variable operations.
template <class C>
concept VariableContext = InReplica<C> || InCrossReplica<C> || InUpdate<C>;

/// True if the context is valid for a variable operation; otherwise a readable compile error.
template <class Context, bool writes = false>
[[nodiscard]] consteval bool require_variable_context() {
  constexpr bool is_context = VariableContext<Context> || is_cached_reads<Context> || InTrace<Context>;
  static_assert(is_context,
                "a variable operation takes the context it is called in: the replica function's first argument, or "
                "strategy.scope() outside replica functions");
  static_assert(!writes || !is_cached_reads<Context>,
                "CachedReads cannot write: give the write the context that the CachedReads were made from");
  return is_context && !(writes && is_cached_reads<Context>);
}
}  // namespace detail

/// A variable with one copy per replica, in the strategy's memory. Made by `strategy.variable<T, Sync, Agg>(shape, …)`.
///
/// Each operation takes the context of the call. The rules of spec G.2 are resolved at compile time:
///
/// | Sync, Agg | read in a replica | read outside | write in a replica | write outside |
/// |---|---|---|---|---|
/// | OnWrite, None | own copy | copy 0 | own copy only | every copy |
/// | OnWrite, Sum / Mean / OnlyFirstReplica | own copy | copy 0 | aggregate the replicas' values, then every copy | every copy |
/// | OnRead, Sum | own copy | sum of the copies | own copy only | assign: value / replicas in every copy; add, sub: compile error |
/// | OnRead, Mean | own copy | mean of the copies | own copy only | every copy |
/// | OnRead, OnlyFirstReplica | own copy | copy 0 | own copy only | every copy |
/// | OnRead, None | own copy | compile error | own copy only | every copy |
/// | OnShard, None | own elements | all elements, from their owners | by component only | assign: each element to its owner |
///
/// In the function of `strategy.update`, operations act on that copy, without aggregation (spec B06).
///
/// In a compiled step, `read` returns a traced array and `value` a traced number. Written values are traced or numbers.
/// Reads and writes follow the columns for a replica.
///
/// The strategy's `Store` determines the location of copies and their writers. Copies that replicas share, as under
/// CentralStorage, are read in all contexts, for every synchronization. A write in a replica function is aggregated,
/// which requires an aggregation, and applied once; a write outside is applied once (spec G.3).
///
/// `value(context)` is a number: `2 * v.value(context)` (spec G29).
///
/// Written values are a number for all elements, or a tensor with the variable's shape and element type. In a replica
/// function, this is the replica's own value, even a literal (spec G.4); `same(value)` marks a value that is the same
/// on all replicas. Aggregating writes are collective calls, in which either all replicas pass a number or all pass a
/// tensor. They require equal copies. Writes return nothing (spec G24).
///
/// Throws WrongStrategy if the context belongs to another strategy, ShapeMismatch or InvalidArgument for a value that
/// does not fit, or an integer total that is not divisible by the number of replicas. All errors name the variable.
template <class T, class Sync, class Agg, class DeviceType = Cpu>
class DistributedVariable : public detail::VariableCore<typename DeviceType::Memory> {
  static_assert((detail::require_variable_policies<T, Sync, Agg>(), true));
  using Core = detail::VariableCore<typename DeviceType::Memory>;

 public:
  using Element = T;
  /// The relation between copies: OnWrite, OnRead or OnShard.
  using Synchronization = Sync;
  /// The combination of the replicas' values: None, Sum, Mean or OnlyFirstReplica.
  using Aggregation = Agg;
  /// The type of the devices that hold the copies.
  using Device = DeviceType;
  /// The memory that the copies are in.
  using Memory = typename Device::Memory;
  /// Elements of a copy, in the device's memory.
  using Span = typename Device::template Span<T>;
  /// A read-only tensor in the memory of a copy.
  using View = TensorView<const T, typename Device::Space>;

  /// A variable in `memory` of a strategy, with unspecified values; `strategy.variable` initialises it.
  DistributedVariable(const std::shared_ptr<Memory>& memory, Shape shape, std::string name,
                      Trainable which = Trainable::by_synchronization)
      : Core(memory, shape, std::move(name), sizeof(T),
             which == Trainable::by_synchronization ? std::same_as<Sync, OnWrite> : which == Trainable::yes) {}
  /// Not copyable: make another variable with `strategy.variable` and assign (spec G10).
  DistributedVariable(const DistributedVariable&) = delete;
  DistributedVariable& operator=(const DistributedVariable&) = delete;
  /// A variable that was moved from may only be assigned to or destroyed.
  DistributedVariable(DistributedVariable&&) = default;
  /// A variable that was moved from may only be assigned to or destroyed.
  DistributedVariable& operator=(DistributedVariable&&) = default;
  ~DistributedVariable() = default;

  /// Returns the name of a copy: "name", "name/replica_1", … (spec G05).
  [[nodiscard]] std::string component_name(std::size_t local_replica) const {
    return local_replica == 0 ? this->name() : concat(this->name(), "/replica_", local_replica);
  }
  using Core::remote;
  using Core::set_remote;
  using Core::trainable;
  /// Returns the number of copies in this process, which the strategy's Store determines.
  [[nodiscard]] std::size_t copies() const noexcept { return this->memory()->replicas(); }

  /// Returns the calling replica's copy, to read and change without communication. If replicas share it, changing the
  /// same element on two replicas is a data race.
  template <class Context>
  [[nodiscard]] Span component(const Context& context) const {
    static_assert(!InTrace<Context>,
                  "a compiled step has no memory to access: read(replica) returns the elements as a traced array");
    static_assert(InReplica<Context> || InUpdate<Context> || InTrace<Context>,
                  "component(context) needs the context of a replica function or of strategy.update: elsewhere, name "
                  "the copy with component(strategy.scope(), replica)");
    return changeable(context, near_copy(context));
  }
  /// Returns the copy of one replica of this process, in cross-replica contexts. Throws InvalidArgument if
  /// `local_replica` is out of range.
  [[nodiscard]] Span component(const InCrossReplica auto& context, std::size_t local_replica) const {
    require_same_strategy(context);
    const std::size_t replicas = context.strategy().num_local_replicas();
    if (local_replica >= replicas)
      detail::refuse_replica(this->name(), local_replica, replicas, context.strategy().describe());
    await(context);
    return changeable(context, on(StoreOf<decltype(context)>::copy_of(local_replica)));
  }
  /// Returns copy `number` in this process, which several replicas may share.
  [[nodiscard]] Span copy(const InCrossReplica auto& context, std::size_t number) const {
    require_same_strategy(context);
    await(context);
    return on(number);
  }
  /// Returns the copy that the context reads. Under a RemoteStore, elements may not have arrived yet
  /// (RemoteStore::await).
  template <class Context>
  [[nodiscard]] Span copy(const Context& context) const {
    require_same_strategy(context);
    if constexpr (InCrossReplica<Context>) {
      return on(0);
    } else {
      return on(StoreOf<Context>::copy_of(context.local_index()));
    }
  }

  /// Returns the queue for the copy of `context`.
  template <class Context>
  [[nodiscard]] auto queue(const Context& context) const {
    return detail::queue_of<Device>(context);
  }
  /// Returns the queue for copy `copy` of this process.
  [[nodiscard]] auto queue(const InCrossReplica auto& context, std::size_t copy) const {
    return detail::queue_of<Device>(context, copy);
  }

  /// Returns a view of the local copy, or a new tensor if copies are aggregated, or if the context is outside replica
  /// functions and the host cannot access the copies.
  template <class Context = detail::NoContext<T>>
  [[nodiscard]] auto read(const Context& context = {}) const {
    require_context<Context>();
    if constexpr (detail::is_cached_reads<Context> || InTrace<Context>) {
      return context.read(*this);
    } else if constexpr (!detail::VariableContext<Context>) {
      return TensorView<const T>{};  // rejected above
    } else if constexpr (InCrossReplica<Context> && is_on_shard) {
      return whole(context);
    } else if constexpr (InCrossReplica<Context> && detail::copies_may_differ<DistributedVariable, Context>) {
      require_same_strategy(context);
      Tensor<T> aggregated{this->shape()};
      detail::aggregate_copies(*this, context, aggregated.elements());
      return aggregated;
    } else if constexpr (InCrossReplica<Context> && !Device::Space::host_accessible) {
      Tensor<T> values{this->shape()};
      detail::copy_and_wait(queue(context, 0), near_copy(context), values.elements());
      return values;
    } else {
      return View{near_copy(context).data(), this->shape()};
    }
  }
  /// Returns the value of a variable with one element, by the rules of `read` but without a tensor. Throws
  /// ShapeMismatch unless it has exactly one element.
  template <class Context = detail::NoContext<T>>
  [[nodiscard]] auto value(const Context& context = {}) const {
    require_context<Context>();
    if constexpr (detail::is_cached_reads<Context> || InTrace<Context>) {
      return context.value(*this);
    } else if constexpr (!detail::VariableContext<Context>) {
      return T{};  // rejected above
    } else {
      const Span copy = near_copy(context);
      detail::require_one_element(*this);
      T value{};
      if constexpr (InCrossReplica<Context> && is_on_shard)
        value = whole(context)[0];
      else if constexpr (InCrossReplica<Context> && detail::copies_may_differ<DistributedVariable, Context>)
        detail::aggregate_copies(*this, context, std::span<T>{&value, 1});
      else if constexpr (InCrossReplica<Context>)
        detail::copy_and_wait(queue(context, 0), copy, std::span<T>{&value, 1});
      else
        detail::copy_and_wait(queue(context), copy, std::span<T>{&value, 1});
      return value;
    }
  }

  /// In a replica function, returns the value that `read` returns outside: a new tensor with the aggregate of all
  /// copies, or a view if copies are kept equal (spec B16). A collective call for OnRead variables.
  template <class Context>
  [[nodiscard]] auto synchronized_read(const Context& replica) const {
    require_replica<Context>();
    if constexpr (InTrace<Context>) {
      return replica.synchronized_read(*this);
    } else if constexpr (InReplica<Context> && is_on_shard) {
      return OwnerStore::gathered(*this, replica);
    } else if constexpr (InReplica<Context> && detail::copies_may_differ<DistributedVariable, Context>) {
      Tensor<T> aggregated{this->shape()};
      detail::copy_and_wait(queue(replica), near_copy(replica), aggregated.elements());
      detail::aggregate_over_replicas(*this, replica, aggregated.elements());
      return aggregated;
    } else {
      return read(replica);
    }
  }
  /// Returns the value of `synchronized_read` for a variable with one element.
  template <class Context>
  [[nodiscard]] auto synchronized_value(const Context& replica) const {
    require_replica<Context>();
    if constexpr (InTrace<Context>) {
      return replica.synchronized_value(*this);
    } else {
      T aggregated = value(replica);
      if constexpr (InReplica<Context> && detail::copies_may_differ<DistributedVariable, Context>)
        detail::aggregate_over_replicas(*this, replica, std::span<T>{&aggregated, 1});
      return aggregated;
    }
  }

  /// Returns the state for a checkpoint, outside replica functions. `restore` of it, under any strategy and number of
  /// replicas, makes a variable with the same `whole`. A collective call of the processes, unless copies are kept
  /// equal.
  ///
  /// | Sync, Agg | whole | restore |
  /// |---|---|---|
  /// | OnWrite, and all if replicas share copies | copy 0 | every copy |
  /// | OnRead, Sum | sum of the copies | replica 0's copy; the others are zero |
  /// | OnRead, Mean | mean of the copies | every copy |
  /// | OnRead, OnlyFirstReplica; None | replica 0's copy | every copy |
  /// | OnShard, None | each element from its owner | each element to its owner |
  [[nodiscard]] Tensor<T> whole(const InCrossReplica auto& context) const {
    require_same_strategy(context);
    return detail::whole(*this, context);
  }
  /// Restores the result of `whole`. Throws ShapeMismatch if the shapes differ.
  void restore(const InCrossReplica auto& context, TensorView<const T> values) {
    require_same_strategy(context);
    detail::restore(*this, context, detail::given_to(*this, values));
  }

  /// Replaces the elements by `value`, by the rules of the class.
  void assign(const auto& context, const auto&... value) { write<detail::Assign>(context, value...); }
  /// Adds `value` to the elements, by the rules of the class.
  void assign_add(const auto& context, const auto&... value) { write<Sum>(context, value...); }
  /// Subtracts `value` from the elements, by the rules of the class.
  void assign_sub(const auto& context, const auto&... value) { write<detail::Subtract>(context, value...); }

  /// Updates the rows of `slices` (IndexedSlices<T> or a view); rows with repeated indices are updated repeatedly, in
  /// order. Only for OnWrite variables (spec G26 to G28). In a replica function with aggregation Sum or Mean, applies
  /// the slices of all replicas to every copy, in rank order; for Mean, with values divided by the number of replicas.
  /// With OnlyFirstReplica, applies the slices of replica 0. Throws ShapeMismatch if the dense shape differs.
  void scatter_add(const auto& context, const auto&... slices) { scatter<Sum>(context, slices...); }
  /// Subtracts `slices` from these rows, like `scatter_add`.
  void scatter_sub(const auto& context, const auto&... slices) { scatter<detail::Subtract>(context, slices...); }
  /// Multiplies these rows by `slices`, like `scatter_add`.
  void scatter_mul(const auto& context, const auto&... slices) { scatter<Prod>(context, slices...); }
  /// Throws InvalidArgument if an integer value is zero.
  void scatter_div(const auto& context, const auto&... slices) { scatter<detail::Divide>(context, slices...); }
  /// Requires aggregation None or OnlyFirstReplica, like `scatter_max` and `scatter_update` (spec G27).
  void scatter_min(const auto& context, const auto&... slices) { scatter<Min>(context, slices...); }
  /// Replaces the elements of these rows by the maximum of old and given ones, like `scatter_min`.
  void scatter_max(const auto& context, const auto&... slices) { scatter<Max>(context, slices...); }
  /// Replaces these rows by `slices`, like `scatter_min`. The last slice of a repeated index counts.
  void scatter_update(const auto& context, const auto&... slices) { scatter<detail::Assign>(context, slices...); }

 private:
  static constexpr bool is_on_shard = detail::is_on_shard<Sync>;

  template <class Context, bool writes = false>
  static constexpr void require_context() {
    static_cast<void>(detail::require_variable_context<Context, writes>());
  }

  template <class Context>
  static constexpr void require_replica() {
    static_assert(InReplica<Context> || InTrace<Context>,
                  "a synchronized read must be in a replica function: outside, read and value aggregate");
  }

  template <class Update, class Value>
  void write(const Value&) {
    require_context<detail::NoContext<Value>>();
  }
  template <class Update, class Context, class Value>
  void write(const Context& context, const Value& value) {
    require_context<Context, true>();
    if constexpr (is_on_shard) {
      constexpr bool assigned_outside = InCrossReplica<Context> && std::same_as<Update, detail::Assign>;
      static_assert(assigned_outside,
                    "only the owners of its elements change an OnShard variable: in a replica function, change "
                    "component(replica) in reduce_and_apply or update_shards; outside, assign the whole variable");
      if constexpr (assigned_outside) detail::restore(*this, context, detail::given_to(*this, value));
    } else if constexpr (InTrace<Context>) {
      context.template write<Update>(*this, value);
    } else if constexpr (detail::VariableContext<Context>) {
      detail::write_value(*this, context, value, Update{});
    }
  }
  template <class Update, class Slices>
  void scatter(const Slices&) {
    require_context<detail::NoContext<Slices>>();
  }
  template <class Update, class Context, class Slices>
  void scatter(const Context& context, const Slices& slices) {
    require_context<Context, true>();
    static_assert(!InTrace<Context>,
                  "a compiled step has no scatter operations: compute the whole array and assign it");
    if constexpr (detail::VariableContext<Context>) {
      constexpr bool lies_here = !RemoteStore<StoreOf<Context>>;
      static_assert(lies_here,
                    "scatter operations on a ParameterServer need a variable made with strategy.variable<T>(shape), "
                    "which is stored only on the servers, without a copy in this process");
      if constexpr (lies_here) detail::scatter(*this, context, slices, Update{});
    }
  }

  /// Returns the copy that `context` reads and writes (outside replica functions the first), once its elements have
  /// arrived.
  template <class Context>
  [[nodiscard]] Span near_copy(const Context& context) const {
    const Span near = copy(context);
    await(context);
    return near;
  }
  template <class Context>
  void await([[maybe_unused]] const Context& context) const {
    if constexpr (RemoteStore<StoreOf<Context>>) StoreOf<Context>::await(context, *this, IndexRange{0, this->size()});
  }
  template <class Context>
  [[nodiscard]] Span changeable([[maybe_unused]] const Context& context, Span copy) const {
    if constexpr (RemoteStore<StoreOf<Context>>) StoreOf<Context>::change(context, *this);
    return copy;
  }
  template <class Context>
  void require_same_strategy(const Context& context) const {
    if (context.strategy().template memory_on<Device>() != this->memory())
      detail::refuse_strategy(true, this->name(), context.strategy().describe());
  }

  [[nodiscard]] Span on(std::size_t copy) const { return Core::template on<T, typename Device::Space>(copy); }
};

}  // namespace dist
