#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/variable/cached_reads.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/read.hpp>
#include <dist/variable/scatter.hpp>
#include <dist/variable/slice.hpp>
#include <dist/variable/store/owner.hpp>
#include <dist/variable/whole.hpp>
#include <dist/variable/write.hpp>

namespace dist {

namespace detail {
/// What a call has that forgot the context, for a sentence instead of a list of candidates.
template <class Argument>
struct NoContext {};

/// Where variable operations can be called.
template <class C>
concept VariableContext = InReplica<C> || InCrossReplica<C> || InUpdate<C>;

/// Refuses, in a sentence, what is no context of a variable operation, and says whether it did not.
template <class Context, bool writes = false>
[[nodiscard]] consteval bool require_variable_context() {
  constexpr bool is_context = VariableContext<Context> || is_cached_reads<Context> || InTrace<Context>;
  static_assert(is_context,
                "a variable operation takes the context it is called in: the replica function's first argument, or "
                "strategy.scope() outside replica functions");
  static_assert(!writes || !is_cached_reads<Context>,
                "a write goes to the store: give it the context that the CachedReads were made from");
  return is_context && !(writes && is_cached_reads<Context>);
}
}  // namespace detail

/// A variable with one copy per replica, in the strategy's memory. Made by `strategy.variable<T, Sync, Agg>(shape, …)`.
///
/// Every operation takes the context it is called in, and the table of spec G.2 is resolved at compile time:
///
/// | Sync, Agg | read in a replica | read outside | write in a replica | write outside |
/// |---|---|---|---|---|
/// | OnWrite, None | own copy | copy 0 | own copy only | every copy |
/// | OnWrite, Sum / Mean / OnlyFirstReplica | own copy | copy 0 | aggregate the replicas' values, then every copy | every copy |
/// | OnRead, Sum | own copy | sum of the copies | own copy only | assign: value / replicas in every copy; add, sub: refused |
/// | OnRead, Mean | own copy | mean of the copies | own copy only | every copy |
/// | OnRead, OnlyFirstReplica | own copy | copy 0 | own copy only | every copy |
/// | OnRead, None | own copy | refused | own copy only | every copy |
/// | OnShard, None | own elements | all elements, of their owners | by component only | assign: of each element its owner |
///
/// In the function of `strategy.update` every operation acts on that one copy, without aggregation (spec B06).
///
/// In a step that is compiled, `read` gives a traced array and `value` a traced number, and a value that is written is one
/// of these or a number; reads and writes follow the columns for a replica.
///
/// Where copies lie and who changes them is the affair of the strategy's `Store`. Where replicas share a copy, as under
/// CentralStorage, it is read in every context, whatever the synchronization: a write in a replica function is
/// aggregated, which needs an aggregation, and done once; a write outside is done once (spec G.3).
///
/// `value(context)` is the conversion to a number: `2 * v.value(context)` follows the read rule of the context (spec
/// G29).
///
/// A written value is one number for all elements, or a tensor of the variable's shape and element type. In a replica
/// function it is that replica's own value, a literal as well (spec G.4); `same(value)` says that all replicas give the
/// same. Aggregating writes are collective calls, in which all replicas give a number or all give a tensor. They rely
/// on copies that are equal, because an element may be calculated for all copies from one of them. Nothing is returned:
/// read afterwards (spec G24). Throws WrongStrategy when the context belongs to another strategy, ShapeMismatch or
/// InvalidArgument for a value that does not fit, or a total of integers that the replicas do not divide; all name the
/// variable.
template <class T, class Sync, class Agg, class DeviceType = Cpu>
class DistributedVariable {
  static_assert((detail::require_variable_policies<T, Sync, Agg>(), true));

 public:
  using Element = T;
  using Synchronization = Sync;
  using Aggregation = Agg;
  using Device = DeviceType;
  using Memory = typename Device::Memory;
  /// Elements of a copy, where the device has them.
  using Span = typename Device::template Span<T>;
  using View = TensorView<const T, typename Device::Space>;

  DistributedVariable(std::shared_ptr<Memory> memory, Shape shape, std::string name,
                      Trainable trainable = Trainable::by_synchronization)
      : slice_(std::move(memory), shape.elements()),
        shape_(shape),
        name_(std::move(name)),
        trainable_(trainable == Trainable::by_synchronization ? std::same_as<Sync, OnWrite>
                                                              : trainable == Trainable::yes) {}
  /// A copy would be another variable of the same strategy and name, whose copies nobody keeps equal to these: make one
  /// with `strategy.variable` and assign (spec G10).
  DistributedVariable(const DistributedVariable&) = delete;
  DistributedVariable& operator=(const DistributedVariable&) = delete;
  DistributedVariable(DistributedVariable&&) = default;
  DistributedVariable& operator=(DistributedVariable&&) = default;
  ~DistributedVariable() = default;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// What a copy is called where each needs a name: "name", "name/replica_1", … (spec G05).
  [[nodiscard]] std::string component_name(std::size_t local_replica) const {
    return local_replica == 0 ? name_ : concat(name_, "/replica_", local_replica);
  }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t size() const noexcept { return slice_.size(); }
  /// Whether optimizers may change it (spec G03).
  [[nodiscard]] bool trainable() const noexcept { return trainable_; }
  /// Where the copies start in the regions of the arena.
  [[nodiscard]] std::size_t offset() const noexcept { return slice_.offset(); }
  /// The arena that owns the variable; it identifies the strategy.
  [[nodiscard]] const std::shared_ptr<Memory>& memory() const noexcept { return slice_.memory(); }
  /// What a RemoteStore keeps for it; null under other strategies.
  [[nodiscard]] const auto& remote() const noexcept { return remote_; }
  void set_remote(auto remote) noexcept { remote_ = std::move(remote); }
  /// The copies in this process: as many as the strategy's Store keeps for its replicas.
  [[nodiscard]] std::size_t copies() const noexcept { return slice_.replicas(); }

  /// The calling replica's own copy, to read and to change without communication. Where one copy serves all replicas it
  /// is that one, and to change the same element on two replicas is a data race.
  template <class Context>
  [[nodiscard]] Span component(const Context& context) const {
    static_assert(!InTrace<Context>,
                  "a compiled step has no memory to be looked at: read(replica) gives the elements as a traced array");
    static_assert(
        InReplica<Context> || InUpdate<Context> || InTrace<Context>,
        "component(context) is the copy of a replica function or of strategy.update; elsewhere name the copy: "
        "component(strategy.scope(), replica)");
    return changeable(context, near_copy(context));
  }
  /// The copy of one replica of this process, in contexts that see all of them. Throws InvalidArgument when there is no
  /// such replica.
  [[nodiscard]] Span component(const InCrossReplica auto& context, std::size_t local_replica) const {
    require_same_strategy(context);
    const std::size_t replicas = context.strategy().num_local_replicas();
    if (local_replica >= replicas)
      throw InvalidArgument(concat("Variable '", name_, "' has no copy of replica ", local_replica),
                            concat(context.strategy().describe(), ", numbered from 0"),
                            concat("Name one of the first ", replicas));
    await(context);
    return changeable(context, slice_.on(StoreOf<decltype(context)>::copy_of(local_replica)));
  }
  /// Copy `number` of those that there are in this process, whoever reads it.
  [[nodiscard]] Span copy(const InCrossReplica auto& context, std::size_t number) const {
    require_same_strategy(context);
    await(context);
    return slice_.on(number);
  }
  /// The copy that the context reads, as it is: under a RemoteStore elements may still be on their way (RemoteStore::await).
  template <class Context>
  [[nodiscard]] Span copy(const Context& context) const {
    require_same_strategy(context);
    if constexpr (InCrossReplica<Context>) {
      return slice_.on(0);
    } else {
      return slice_.on(StoreOf<Context>::copy_of(context.local_index()));
    }
  }

  /// The queue that works in the copy of `context`.
  template <class Context>
  [[nodiscard]] auto queue(const Context& context) const {
    return detail::queue_of<Device>(context);
  }
  [[nodiscard]] auto queue(const InCrossReplica auto& context, std::size_t copy) const {
    return detail::queue_of<Device>(context, copy);
  }

  /// A view of the copy that is near, or a new tensor where copies are aggregated, or outside replica functions where the
  /// host cannot touch them.
  template <class Context = detail::NoContext<T>>
  [[nodiscard]] auto read(const Context& context = {}) const {
    require_context<Context>();
    if constexpr (detail::is_cached_reads<Context> || InTrace<Context>) {
      return context.read(*this);
    } else if constexpr (!detail::VariableContext<Context>) {
      return TensorView<const T>{};  // refused above
    } else if constexpr (InCrossReplica<Context> && is_on_shard) {
      return whole(context);
    } else if constexpr (InCrossReplica<Context> && detail::copies_may_differ<DistributedVariable, Context>) {
      require_same_strategy(context);
      Tensor<T> aggregated{shape_};
      detail::aggregate_copies(*this, context, aggregated.elements());
      return aggregated;
    } else if constexpr (InCrossReplica<Context> && !Device::Space::host_accessible) {
      Tensor<T> values{shape_};
      detail::copy_and_wait(queue(context, 0), near_copy(context), values.elements());
      return values;
    } else {
      return View{near_copy(context).data(), shape_};
    }
  }
  /// The value of a variable with one element, read by the rules of `read` but without a tensor. Throws ShapeMismatch
  /// when there are more.
  template <class Context = detail::NoContext<T>>
  [[nodiscard]] auto value(const Context& context = {}) const {
    require_context<Context>();
    if constexpr (detail::is_cached_reads<Context> || InTrace<Context>) {
      return context.value(*this);
    } else if constexpr (!detail::VariableContext<Context>) {
      return T{};  // refused above
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

  /// In a replica function, what `read` gives outside: a new tensor with the copies of all replicas aggregated, or a
  /// view where they are kept equal (spec B16). A collective call of an OnRead variable.
  template <class Context>
  [[nodiscard]] auto synchronized_read(const Context& replica) const {
    require_replica<Context>();
    if constexpr (InTrace<Context>) {
      return replica.synchronized_read(*this);
    } else if constexpr (InReplica<Context> && is_on_shard) {
      return OwnerStore::gathered(*this, replica);
    } else if constexpr (InReplica<Context> && detail::copies_may_differ<DistributedVariable, Context>) {
      Tensor<T> aggregated{shape_};
      detail::copy_and_wait(queue(replica), near_copy(replica), aggregated.elements());
      detail::aggregate_over_replicas(*this, replica, aggregated.elements());
      return aggregated;
    } else {
      return read(replica);
    }
  }
  /// The same of a variable with one element.
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

  /// All that outlives a run, outside replica functions: what a checkpoint keeps. Under any strategy, with any number of
  /// replicas, `restore` of it makes a variable that has the same `whole` again. A collective call of the processes,
  /// unless copies are kept equal.
  ///
  /// | Sync, Agg | whole | restore |
  /// |---|---|---|
  /// | OnWrite, and all where replicas share copies | copy 0 | every copy |
  /// | OnRead, Sum | sum of the copies | replica 0's copy; the others are zero |
  /// | OnRead, Mean | mean of the copies | every copy |
  /// | OnRead, OnlyFirstReplica; None | replica 0's copy | every copy |
  /// | OnShard, None | of each element its owner's | of each element its owner's |
  [[nodiscard]] Tensor<T> whole(const InCrossReplica auto& context) const {
    require_same_strategy(context);
    return detail::whole(*this, context);
  }
  /// Its inverse. Throws ShapeMismatch for values of another shape.
  void restore(const InCrossReplica auto& context, TensorView<const T> values) {
    require_same_strategy(context);
    detail::restore(*this, context, detail::given_to(*this, values));
  }

  void assign(const auto& context, const auto&... value) { write<detail::Assign>(context, value...); }
  void assign_add(const auto& context, const auto&... value) { write<Sum>(context, value...); }
  void assign_sub(const auto& context, const auto&... value) { write<detail::Subtract>(context, value...); }

  /// The rows that `slices` (IndexedSlices<T> or a view of them) names change; rows that are named twice change twice,
  /// in the order given. Of OnWrite variables only (spec G26 to G28). In a replica function with aggregation Sum or
  /// Mean the slices of all replicas are applied to every copy, in rank order, Mean after dividing the values by the
  /// number of replicas; with OnlyFirstReplica those of replica 0. Throws ShapeMismatch for slices of another shape.
  void scatter_add(const auto& context, const auto&... slices) { scatter<Sum>(context, slices...); }
  void scatter_sub(const auto& context, const auto&... slices) { scatter<detail::Subtract>(context, slices...); }
  void scatter_mul(const auto& context, const auto&... slices) { scatter<Prod>(context, slices...); }
  /// Throws InvalidArgument for an integer zero among the values.
  void scatter_div(const auto& context, const auto&... slices) { scatter<detail::Divide>(context, slices...); }
  /// The following three with aggregation None or OnlyFirstReplica only (spec G27).
  void scatter_min(const auto& context, const auto&... slices) { scatter<Min>(context, slices...); }
  void scatter_max(const auto& context, const auto&... slices) { scatter<Max>(context, slices...); }
  void scatter_update(const auto& context, const auto&... slices) { scatter<detail::Assign>(context, slices...); }

 private:
  static constexpr bool is_on_shard = detail::is_on_shard<Sync>;
  /// void, but of T: so a program without variables does not pay for the type of the pointer.
  using Remote = std::conditional_t<std::is_void_v<T>, T, void>;

  template <class Context, bool writes = false>
  static constexpr void require_context() {
    static_cast<void>(detail::require_variable_context<Context, writes>());
  }

  template <class Context>
  static constexpr void require_replica() {
    static_assert(InReplica<Context> || InTrace<Context>,
                  "a synchronized read is made in a replica function: outside, read and value aggregate");
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
                    "an OnShard variable is changed by the owners of its elements: in a replica function change "
                    "component(replica) in reduce_and_apply or update_shards, outside assign it whole");
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
      static_assert(
          lies_here,
          "scatter operations on a ParameterServer are those of what strategy.variable<T>(shape) makes there, "
          "which lies on the servers only and has no copy in this process");
      if constexpr (lies_here) detail::scatter(*this, context, slices, Update{});
    }
  }

  /// The copy that `context` reads and writes, once its elements are there; outside replica functions the first.
  template <class Context>
  [[nodiscard]] Span near_copy(const Context& context) const {
    const Span near = copy(context);
    await(context);
    return near;
  }
  template <class Context>
  void await([[maybe_unused]] const Context& context) const {
    if constexpr (RemoteStore<StoreOf<Context>>) StoreOf<Context>::await(context, *this, IndexRange{0, size()});
  }
  template <class Context>
  [[nodiscard]] Span changeable([[maybe_unused]] const Context& context, Span copy) const {
    if constexpr (RemoteStore<StoreOf<Context>>) StoreOf<Context>::change(context, *this);
    return copy;
  }
  template <class Context>
  void require_same_strategy(const Context& context) const {
    if (context.strategy().template memory_on<Device>() != slice_.memory())
      throw WrongStrategy(concat("Variable '", name_, "' was used with a strategy that did not make it"),
                          concat("the context belongs to ", context.strategy().describe()),
                          "Make the variable with the strategy that runs the replica function");
  }

  Slice<T, Memory, typename Device::Space> slice_;
  Shape shape_;
  std::string name_;
  bool trainable_;
  std::shared_ptr<Remote> remote_;
};

}  // namespace dist
