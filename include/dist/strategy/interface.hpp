#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/comm/communication_options.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/context/agreed_structure.hpp>
#include <dist/context/cross_replica_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/run_here.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/context/store.hpp>
#include <dist/context/structure.hpp>
#include <dist/context/update_context.hpp>
#include <dist/context/value_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/callable.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/combine_values.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist {

/// A strategy: where replicas run, where variables live, how replicas talk. Library code is written against this.
template <class S>
concept Strategy = requires(S& strategy) {
  typename S::Device;
  typename S::Collectives;
  requires Store<typename S::Store>;
  { strategy.num_replicas_in_sync() } -> std::same_as<std::size_t>;
  { strategy.num_local_replicas() } -> std::same_as<std::size_t>;
  { strategy.scope() } -> InCrossReplica;
  { strategy.describe() } -> std::same_as<std::string>;
  strategy.run([](auto&) {});
};

/// The destination of `reduce_to` that is a copy for each replica.
struct EveryReplica {};
inline constexpr EveryReplica every_replica{};

/// What every strategy offers besides `run`, written once. `Derived` brings `run`, `memory()` for variables,
/// `replica_memory()` for buffers, `num_replicas_in_sync()` and `num_local_replicas()`, `first_local_replica()`, and
/// `workers()`, the collectives between its processes: SelfCollectives where there is one. What sees all replicas at
/// once, such as `reduce`, is a collective call of the processes.
template <class Derived, class DeviceType>
class StrategyInterface {
  struct NoMemory {};
  struct HostArenas {
    std::shared_ptr<Cpu::Memory> of_variables;
    std::shared_ptr<Cpu::Memory> of_buffers;
  };

 public:
  /// Where the host touches memory: the strategy's devices themselves, or the host's own.
  using HostDevice = std::conditional_t<DeviceType::Place::host_accessible, DeviceType, Cpu>;

  StrategyInterface(const StrategyInterface&) = delete;
  StrategyInterface& operator=(const StrategyInterface&) = delete;

  /// The context outside replica functions (spec B03). Throws WrongStrategy inside one (spec B09).
  [[nodiscard]] CrossReplicaContext<Derived> scope() {
    require_outside("scope", "use the replica context, or its merge_call");
    return CrossReplicaContext<Derived>{derived()};
  }

  /// A variable with one copy per replica, or one for all under CentralStorage, with replica 0's initial value, which
  /// is that of the chief where there are several processes (spec A16, G06).
  ///
  /// `initial` is one number for all elements, a TensorView of the shape, a contiguous range of as many numbers, such as
  /// a std::vector, or a function that fills a `TensorView<T>`.
  /// `trainable` says whether optimizers take the variable: they throw InvalidArgument for one that is not trainable;
  /// left out, OnWrite variables are (spec G03). Throws ShapeMismatch, InvalidArgument for a number that T cannot hold,
  /// OutOfMemory, and WrongStrategy inside a replica function.
  template <class T, class Sync = OnWrite, class Agg = None, class Initial = T>
  [[nodiscard]] DistributedVariable<T, Sync, Agg, DeviceType> variable(
      Shape shape, Initial&& initial = T{}, std::string name = "Variable",
      Trainable trainable = Trainable::by_synchronization) {
    require_outside("variable", "make it before run, or give variable the replica context as its first argument");
    return together([&] {
      return initialised<DistributedVariable<T, Sync, Agg, DeviceType>>(
          {derived().memory(), shape, std::move(name), trainable}, initial);
    });
  }

  /// A variable made in a replica function (spec B15): a collective call, of which every replica gets the same
  /// variable, with replica 0's initial value. Throws CollectiveMismatch when the replicas ask for different shapes or
  /// names.
  template <class T, class Sync = OnWrite, class Agg = None, InReplica Context, class Initial = T>
  [[nodiscard]] std::shared_ptr<DistributedVariable<T, Sync, Agg, DeviceType>> variable(
      const Context& replica, Shape shape, Initial&& initial = T{}, std::string name = "Variable",
      Trainable trainable = Trainable::by_synchronization) {
    using Made = DistributedVariable<T, Sync, Agg, DeviceType>;
    return replica.merge_call(
        [&](auto&, const auto& shapes, const auto& names) {
          require_equal(shapes, names);
          return std::make_shared<Made>(
              variable<T, Sync, Agg>(shape, std::forward<Initial>(initial), std::move(name), trainable));
        },
        shape, name);
  }

  /// Calls that forgot the type, for a sentence instead of a list of candidates.
  template <bool has_type = false, class... Rest>
  DistributedVariable<float, OnWrite, None, DeviceType> variable(const Shape&, Rest&&...) {
    static_assert(has_type, "a variable needs the type of its elements: strategy.variable<float>(shape)");
    return detail::refused<DistributedVariable<float, OnWrite, None, DeviceType>>();
  }
  template <bool has_type = false, InReplica Context, class... Rest>
  std::shared_ptr<DistributedVariable<float, OnWrite, None, DeviceType>> variable(const Context&, const Shape&,
                                                                                  Rest&&...) {
    static_assert(has_type, "a variable needs the type of its elements: strategy.variable<float>(replica, shape)");
    return nullptr;
  }

  /// Whether the variable or buffer was made by this strategy (spec D09).
  template <class Variable>
  [[nodiscard]] bool owns(const Variable& variable) const noexcept {
    using Device = typename Variable::Device;
    return variable.memory() == memory_on<Device>() || variable.memory() == replica_memory_on<Device>();
  }

  /// Memory of `shape` for every replica, for what lives no longer than a step. Throws OutOfMemory, and WrongStrategy
  /// inside a replica function.
  template <class T>
  [[nodiscard]] ReplicaBuffer<T, DeviceType> buffer(Shape shape, std::string name = "Buffer") {
    require_outside("buffer", "use a Tensor of its own, or make the buffer before run");
    return {derived().replica_memory(), shape, std::move(name)};
  }

  /// A variable and a buffer in memory of the host whatever the device, for what the host looks at in every step, such as
  /// counters. Where the host can touch the device's memory they are those of `variable` and `buffer`.
  template <class T, class Sync = OnWrite, class Agg = None, class Initial = T>
  [[nodiscard]] DistributedVariable<T, Sync, Agg, HostDevice> host_variable(
      Shape shape, Initial&& initial = T{}, std::string name = "Variable",
      Trainable trainable = Trainable::by_synchronization) {
    require_outside("host_variable", "make it before run");
    make_host_memory();
    return together([&] {
      return initialised<DistributedVariable<T, Sync, Agg, HostDevice>>(
          {memory_on<HostDevice>(), shape, std::move(name), trainable}, initial);
    });
  }
  template <class T>
  [[nodiscard]] ReplicaBuffer<T, HostDevice> host_buffer(Shape shape, std::string name = "Buffer") {
    require_outside("host_buffer", "use a Tensor of its own, or make the buffer before run");
    make_host_memory();
    return {replica_memory_on<HostDevice>(), shape, std::move(name)};
  }

  /// Where its variables and buffers lie on `Device`: its own, or that of the host beside it.
  template <class Device>
  [[nodiscard]] const auto& memory_on() const noexcept {
    if constexpr (std::same_as<Device, DeviceType>)
      return derived().memory();
    else
      return host_memory_.of_variables;
  }
  template <class Device>
  [[nodiscard]] const auto& replica_memory_on() const noexcept {
    if constexpr (std::same_as<Device, DeviceType>)
      return derived().replica_memory();
    else
      return host_memory_.of_buffers;
  }

  /// The values of all replicas become one (spec C07): numbers to a number, tensors element by element to a new tensor,
  /// contiguous ranges of numbers to one of their type, indexed slices to those of all replicas one after another, and
  /// the members of tuples, pairs, arrays, optionals and plain structs each for itself. A plain value, which is
  /// what `run` returns where there is one replica, is returned as it is (spec C11); under MultiWorker each process
  /// gives its own, and these become one (spec C13).
  ///
  /// Throws ShapeMismatch for tensors of different shapes, InvalidArgument for the sum of a plain value where there are
  /// several replicas: it could mean the value, or that many times the value. All that see several replicas at once
  /// throw WrongStrategy inside a replica function.
  template <class Op, class Value>
  [[nodiscard]] auto reduce(Op op, const Value& value) const {
    return reduce(op, value, CommunicationOptions{});
  }
  /// The same, where processes wait for each other as long as `options.timeout` says (spec H13).
  template <class Op, class Value, std::same_as<CommunicationOptions> Options>
  [[nodiscard]] auto reduce(Op op, const Value& value, const Options& options) const {
    require_outside("reduce", "use all_reduce, or reduce in a merge_call");
    return together(options, [&](const auto& workers) {
      require_value_per_replica(derived().num_local_replicas(), value, "reduce was given");
      const detail::AgreedStructure agreed{workers, "worker", value};
      return detail::reduce_values(op, value, derived().num_replicas_in_sync(), workers);
    });
  }
  /// The copies of a variable become one. OnRead: whichever the variable's own aggregation is. OnWrite, whose copies
  /// are equal: the value, under a mean or a maximum (spec C12, E04).
  template <class Op, class T, class Sync, class Agg, class Device>
  [[nodiscard]] Tensor<T> reduce(Op op, const DistributedVariable<T, Sync, Agg, Device>& variable) {
    static_assert(!detail::is_on_shard<Sync>, "an OnShard variable has one value for each element: read it");
    static_assert(
        std::same_as<Sync, OnRead> || detail::is_idempotent<Op>,
        "reduce of a variable whose copies are equal takes mean, min or max, which give its value; a sum would count "
        "the value once for each copy");
    const CrossReplicaContext<Derived> context = scope();
    const detail::HostCopies copies{variable, context};
    const std::size_t values = Derived::Store::shared ? 1 : variable.copies();  // shared copies have one value
    return together([&] {
      return detail::reduce_values(
          op,
          PerReplica<TensorView<const T>>(values,
                                          [&](std::size_t copy) {
                                            return TensorView<const T>{copies[copy], variable.shape()};
                                          }),
          1, derived().workers());
    });
  }
  /// Also along axes of the values (spec C09): of `{0, 1}` the elements of rows and columns of all replicas are
  /// combined, and the result is a tensor without these axes. The values may differ in extent along them; the mean is
  /// that of all elements, whichever replica holds how many (spec C10). A plain tensor is reduced along its axes.
  ///
  /// Throws InvalidArgument for an axis that the values do not have, ShapeMismatch for other differences.
  template <class Op, class Value>
  [[nodiscard]] auto reduce(Op op, const Value& value, Axes axes, const CommunicationOptions& options = {}) const {
    require_outside("reduce", "use all_reduce, or reduce in a merge_call");
    return together(options, [&](const auto& workers) {
      require_value_per_replica(derived().num_local_replicas(), value, "reduce was given");
      const detail::AgreedStructure agreed{workers, "worker", value};
      return detail::reduce_values_along(op, value, axes, derived().num_replicas_in_sync(), workers);
    });
  }

  /// The values of all replicas, concatenated along `axis` in replica order (spec C14). They may differ in extent
  /// along that axis only: throws ShapeMismatch, also for scalars, and InvalidArgument for an axis that they do not
  /// have.
  template <class Value>
  [[nodiscard]] auto gather(const Value& value, int axis, const CommunicationOptions& options = {}) const {
    require_outside("gather", "use all_gather");
    return together(options, [&](const auto& workers) {
      require_value_per_replica(derived().num_local_replicas(), value, "gather was given");
      const detail::AgreedStructure agreed{workers, "worker", value};
      return detail::gather_values(value, axis, workers);
    });
  }

  /// A copy of `value` for each replica of this process (spec D03).
  template <class Value>
  [[nodiscard]] PerReplica<Value> broadcast_to(const Value& value) const {
    require_outside("broadcast_to", "every replica has its own value already");
    return PerReplica<Value>(derived().num_local_replicas(), [&](std::size_t) -> const Value& { return value; });
  }
  /// `reduce`, and a copy of the result for each replica of this process (spec D01).
  template <class Op, class Value>
  [[nodiscard]] auto reduce_to(Op op, const Value& value, EveryReplica,
                               const CommunicationOptions& options = {}) const {
    return broadcast_to(reduce(op, value, options));
  }
  /// `reduce`, and the result written to every copy of a variable (spec D01).
  template <class Op, class Value, class T, class Sync, class Agg, class Device>
  void reduce_to(Op op, const Value& value, DistributedVariable<T, Sync, Agg, Device>& destination,
                 const CommunicationOptions& options = {}) {
    destination.assign(scope(), reduce(op, value, options));
  }
  /// `reduce` of each of the values, in their order, as a tuple (spec D02).
  template <class Op, class... Values>
  [[nodiscard]] auto batch_reduce(Op op, const Values&... values) const {
    return std::tuple{reduce(op, values)...};
  }
  /// `reduce_to` of several values and variables: `batch_reduce_to(op, std::tie(value, variable), …)` (spec D02).
  template <class Op, class... Values, class... Destinations>
  void batch_reduce_to(Op op, const std::tuple<Values&, Destinations&>&... pairs) {
    (reduce_to(op, std::get<0>(pairs), std::get<1>(pairs)), ...);
  }

  /// Calls `fn(context, args...)` for each copy of `variable`, with an UpdateContext in which variable operations act
  /// on that copy; of PerReplica arguments the value that belongs to it (spec D04). Under CentralStorage there is one
  /// copy, and the arguments are those of replica 0. Returns the results as a PerReplica, or nothing.
  ///
  /// Throws WrongStrategy for a variable of another strategy, and inside a replica function, where one replica's copy
  /// is updated by the overload that takes its context.
  template <class Variable, class Fn, class... Args>
    requires(!InReplica<Variable>)
  auto update(const Variable& variable, Fn&& fn, Args&&... args) {
    require_outside("update", "give update the replica context as its first argument");
    (require_value_per_replica(derived().num_local_replicas(), args), ...);
    static_cast<void>(variable.component(CrossReplicaContext<Derived>{derived()}, 0));
    const auto update_one = [&](std::size_t copy) -> decltype(auto) {
      std::size_t reader = 0;
      while (Derived::Store::copy_of(reader) != copy) ++reader;
      UpdateContext<Derived> context{derived(), reader};
      return fn(context, select_replica(reader, args)...);
    };
    const std::size_t copies = variable.copies();
    using Result = std::decay_t<decltype(update_one(0))>;
    if constexpr (std::is_void_v<Result>) {
      for (std::size_t copy = 0; copy < copies; ++copy) update_one(copy);
    } else {
      return PerReplica<Result>(copies, update_one);
    }
  }
  /// In a replica function: calls `fn(context, args...)` for this replica's copy of `variable`. Where replicas share a
  /// copy a collective call, in which one of them updates it (spec D04, E11).
  template <InReplica Context, class Variable, class Fn, class... Args>
  void update(const Context& replica, const Variable& variable, Fn&& fn, Args&&... args) {
    static_cast<void>(variable.component(replica));
    (require_value_per_replica(derived().num_local_replicas(), args), ...);
    Derived::Store::once(replica, [&] {
      UpdateContext<Derived> context{derived(), replica.local_index()};
      fn(context, select_replica(replica.local_index(), args)...);
    });
  }

  /// What `fn(ValueContext)` returns for each replica of this process (spec C19): a PerReplica where replicas are
  /// threads, the plain value under Default and OneDevice.
  template <std::invocable<ValueContext> Fn>
  [[nodiscard]] auto values_from_function(Fn&& fn) const {
    const auto value_of = [&](std::size_t replica) {
      return fn(ValueContext{ReplicaId{derived().first_local_replica() + replica}, derived().num_replicas_in_sync()});
    };
    if constexpr (Derived::wraps_values) {
      return regroup(PerReplica<std::decay_t<decltype(value_of(0))>>(derived().num_local_replicas(), value_of));
    } else {
      return value_of(0);
    }
  }

  /// The values of this process's replicas, in replica order (spec C15): of a structure of PerReplicas the structure of
  /// each replica's values; a plain value counts as one.
  template <class Value>
  [[nodiscard]] auto local_results(const Value& value) const {
    if constexpr (is_per_replica<Value>) {
      return value.values();
    } else if constexpr (detail::holds_per_replica<Value>) {
      return detail::each_replica(value, derived().num_local_replicas());
    } else {
      return std::span<const Value>{&value, 1};
    }
  }
  /// Of a temporary, such as what `run` has just returned: a PerReplica that owns the values.
  template <class Value>
    requires(!std::is_reference_v<Value> && !std::is_const_v<Value>)
  [[nodiscard]] auto local_results(Value&& value) const {
    if constexpr (is_per_replica<Value>) {
      return std::forward<Value>(value);
    } else if constexpr (detail::holds_per_replica<Value>) {
      return detail::each_replica(value, derived().num_local_replicas());
    } else {
      return PerReplica<Value>(1, [&](std::size_t) { return std::forward<Value>(value); });
    }
  }

 protected:
  StrategyInterface() = default;
  ~StrategyInterface() = default;

  /// Throws WrongStrategy inside a replica function of another strategy.
  void require_outside_others(std::string_view method) const {
    detail::require_outside_other_strategies(&derived(), made_in_, method);
  }

  /// Throws WrongStrategy inside a replica function, of this strategy or another.
  void require_outside(std::string_view method, std::string_view instead) const {
    if (derived().is_in_replica_function())
      throw WrongStrategy(text("strategy.", method, " was called inside a replica function"),
                          "it is for the cross-replica context, which sees all replicas at once",
                          text("In a replica function ", instead));
    require_outside_others(method);
  }

 private:
  [[nodiscard]] Derived& derived() noexcept { return static_cast<Derived&>(*this); }
  [[nodiscard]] const Derived& derived() const noexcept { return static_cast<const Derived&>(*this); }

  /// `made`, with `initial` in every copy.
  template <class Variable, class Initial>
  [[nodiscard]] Variable initialised(Variable made, Initial& initial) {
    using T = typename Variable::Element;
    const CrossReplicaContext<Derived> context{derived()};
    const auto first = made.component(context, 0);
    const auto queue = made.queue(context, 0);
    require_same_on_all_workers(made);
    if constexpr (Reducible<std::remove_cvref_t<Initial>>) {
      T element = detail::to_element<T>(initial, made.name());
      derived().workers().broadcast(0, std::span<T>{&element, 1});
      // Memory comes zeroed: leave its pages untouched. -0.0 equals zero, and has other bytes.
      if (const T zero{}; std::memcmp(&element, &zero, sizeof(T)) == 0) return made;
      queue.fill(first, element);
      queue.wait();
    } else if constexpr (Variable::View::is_host_accessible) {
      make_first(made, first, initial);
    } else {
      AlignedBuffer<T> staged(made.size());
      const std::span<T> elements{staged.data(), staged.size()};
      make_first(made, elements, initial);
      detail::copy_and_wait(queue, elements, first);
    }
    Derived::Store::spread(derived(), made, derived().is_in_run());
    return made;
  }
  /// The elements that `initial` says, those of the chief.
  template <class Variable, class T, class Initial>
  void make_first(const Variable& made, std::span<T> elements, Initial& initial) const {
    const Shape& shape = made.shape();
    if constexpr (std::convertible_to<Initial, TensorView<const T>>) {
      const TensorView<const T> values = initial;
      if (values.shape() != shape)
        throw ShapeMismatch(
            text("The initial value does not fit variable '", made.name(), "'"),
            text("the value has shape ", to_string(values.shape()), ", the variable ", to_string(shape)),
            "Give an initial value of the variable's shape");
      std::copy_n(values.data(), values.size(), elements.data());
    } else if constexpr (detail::NumbersFor<std::remove_cvref_t<Initial>, T>) {
      const auto values = detail::numbers_for(made.name(), shape, std::as_const(initial));
      std::copy_n(values.data(), values.size(), elements.data());
    } else {
      constexpr bool fills = detail::is_callable<std::remove_reference_t<Initial>, TensorView<T>>();
      static_assert(fills,
                    "a variable's initial value must be a number, a TensorView of its element type, a contiguous range "
                    "of numbers "
                    "of that type, or a function that fills a TensorView of it");
      if constexpr (fills) initial(TensorView<T>{elements, shape});
    }
    derived().workers().broadcast(0, elements);
  }

  /// Returns what `call` returns, which the processes make together. A process that cannot make it tells the others,
  /// which would wait for it.
  template <class Call>
  auto together(Call&& call) const {
    if constexpr (!CollectivesOfOne<decltype(derived().workers())>) {
      derived().workers().begin_attempt();
      if (!derived().is_in_run()) derived().workers().communicator().begin_call();
      try {
        return call();
      } catch (const std::exception& error) {
        derived().workers().abandon(error);
        throw;
      } catch (...) {
        derived().workers().abandon("it threw something that is not a std::exception");
        throw;
      }
    } else {
      return call();
    }
  }

  /// The same of `call(workers)`, where these wait for each other as long as `options` say.
  template <class Call>
  auto together(const CommunicationOptions& options, Call&& call) const {
    return together([&] { return detail::as_asked(derived().workers(), options, call); });
  }

  /// Throws CollectiveMismatch unless all workers make a variable of that shape and name.
  template <class Variable>
  void require_same_on_all_workers(const Variable& made) const {
    const auto& workers = derived().workers();
    if constexpr (!CollectivesOfOne<decltype(workers)>) {
      struct Identity {
        Shape shape;
        std::size_t length;
        char name[100];  // the beginning, if it is longer
      };
      Identity mine{made.shape(), made.name().size(), {}};
      made.name().copy(mine.name, sizeof(mine.name) - 1);
      PerReplica<Identity> all(workers.communicator().size());
      workers.exchange("variable", mine, std::span<Identity>{all.begin(), all.size()});
      for (std::size_t worker = 1; worker < all.size(); ++worker)
        if (all[worker].shape != all[0].shape || all[worker].length != all[0].length ||
            std::string_view{all[worker].name} != all[0].name)
          throw CollectiveMismatch(
              "The workers did not make the same variable",
              text("worker 0 made '", all[0].name, "' of shape ", to_string(all[0].shape), ", worker ", worker, " '",
                   all[worker].name, "' of shape ", to_string(all[worker].shape)),
              "Make the same variables in the same order on every worker");
    }
  }

  /// Throws CollectiveMismatch unless all replicas gave the same shape and name for a variable.
  template <class Shapes, class Names>
  static void require_equal([[maybe_unused]] const Shapes& shapes, [[maybe_unused]] const Names& names) {
    if constexpr (is_per_replica<Shapes>) {
      for (std::size_t replica = 1; replica < shapes.size(); ++replica)
        if (shapes[replica] != shapes[0] || names[replica] != names[0])
          throw CollectiveMismatch("The replicas did not make the same variable",
                                   text("replica 0 made '", names[0], "' of shape ", to_string(shapes[0]), ", replica ",
                                        replica, " '", names[replica], "' of shape ", to_string(shapes[replica])),
                                   "Make the same variables in the same order on every replica");
    }
  }

  void make_host_memory() {
    if constexpr (!std::same_as<HostDevice, DeviceType>) {
      if (host_memory_.of_variables != nullptr) return;
      const std::size_t replicas = derived().num_local_replicas();
      host_memory_.of_variables = std::make_shared<Cpu::Memory>(Derived::Store::copies(replicas));
      host_memory_.of_buffers = std::make_shared<Cpu::Memory>(replicas);
    }
  }

  const void* made_in_ = detail::run_here.strategy;
  [[no_unique_address]] std::conditional_t<std::same_as<HostDevice, DeviceType>, NoMemory, HostArenas> host_memory_;
};

namespace detail {

/// The synchronization and the aggregation among `Policies`, in any order.
template <class... Policies>
struct VariablePolicies {
  using Synchronization = OnWrite;
  using Aggregation = None;
};
template <Synchronization Sync>
struct VariablePolicies<Sync> {
  using Synchronization = Sync;
  using Aggregation = None;
};
template <class Agg>
struct VariablePolicies<Agg> {
  using Synchronization = OnWrite;
  using Aggregation = Agg;
};
template <class First, class Second>
struct VariablePolicies<First, Second> {
  static constexpr bool in_order = dist::Synchronization<First>;
  static_assert(in_order != dist::Synchronization<Second>,
                "a variable has one synchronization, OnWrite or OnRead, and one aggregation: None, Sum, Mean or "
                "OnlyFirstReplica");
  using Synchronization = std::conditional_t<in_order, First, Second>;
  using Aggregation = std::conditional_t<in_order, Second, First>;
};

}  // namespace detail

/// `strategy.variable` as a free function, which generic code calls without `.template`, with the policies in any order:
/// `dist::variable<float, dist::Sum, dist::OnRead>(strategy, {2}, values, "total")`.
template <class T, class... Policies, Strategy S, class Initial = T>
[[nodiscard]] auto variable(S& strategy, Shape shape, Initial&& initial = T{}, std::string name = "Variable",
                            Trainable trainable = Trainable::by_synchronization) {
  static_assert(sizeof...(Policies) <= 2, "a variable has two policies: one synchronization and one aggregation");
  using Chosen = detail::VariablePolicies<Policies...>;
  return strategy.template variable<T, typename Chosen::Synchronization, typename Chosen::Aggregation>(
      shape, std::forward<Initial>(initial), std::move(name), trainable);
}
/// The same in a replica function, of which every replica gets the one variable (spec B15).
template <class T, class... Policies, InReplica Context, class Initial = T>
[[nodiscard]] auto variable(const Context& replica, Shape shape, Initial&& initial = T{}, std::string name = "Variable",
                            Trainable trainable = Trainable::by_synchronization) {
  using Chosen = detail::VariablePolicies<Policies...>;
  return replica.strategy().template variable<T, typename Chosen::Synchronization, typename Chosen::Aggregation>(
      replica, shape, std::forward<Initial>(initial), std::move(name), trainable);
}

}  // namespace dist
