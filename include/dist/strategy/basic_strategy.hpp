#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/communication_options.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/input_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/context/strategy.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/trace.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/compile.hpp>
#include <dist/strategy/cross_replica.hpp>
#include <dist/strategy/make_variable.hpp>
#include <dist/strategy/shared_copy_order.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist {

template <ReportsFailures Ops>
class BackgroundCollectives;

/// The type of `every_replica`.
struct EveryReplica {};
/// The destination of `reduce_to` that stands for a copy per replica.
inline constexpr EveryReplica every_replica{};

namespace detail {

/// The numbers of replicas; constants if there is only one.
template <class Derived, bool is_one>
struct ReplicaCounts {
  [[nodiscard]] static constexpr std::size_t num_replicas_in_sync() noexcept { return 1; }
  [[nodiscard]] static constexpr std::size_t num_local_replicas() noexcept { return 1; }
};
template <class Derived>
struct ReplicaCounts<Derived, false> {
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept {
    return derived().workers_part().size() * num_local_replicas();
  }
  [[nodiscard]] std::size_t num_local_replicas() const noexcept { return derived().replicas_part().size(); }

 private:
  [[nodiscard]] const Derived& derived() const noexcept { return static_cast<const Derived&>(*this); }
};

}  // namespace detail

/// A strategy, composed of three parts:
/// - `Replicas`: the threads and devices of replica functions, and the communication within a process. OneReplica or
///   ThreadReplicas;
/// - `Workers`: the processes, and the collectives between them. OneProcess or Workers<Ops, Network>;
/// - `Store`: the copies of variables. MirroredStore or CentralStore.
///
/// `Derived` adds constructors and `describe()`. Functions on all replicas, such as `reduce`, are collective calls of
/// the processes, and throw WrongStrategy inside a replica function. For details, see the functions of the same names
/// in cross_replica.hpp.
template <class Derived, class ReplicasPart, class WorkersPart, VariableStore StorePart>
class BasicStrategy : public detail::ReplicaCounts<Derived, !ReplicasPart::are_threads> {
  using Scope = CrossReplicaContext<Derived>;
  struct NoMemory {};
  using CopyOrder =
      std::conditional_t<StorePart::shared && !ReplicasPart::Device::Space::host_accessible,
                         detail::SharedCopyOrder<typename ReplicasPart::Device>, detail::NoSharedCopyOrder>;
  struct HostArenas {
    std::shared_ptr<Cpu::Memory> of_variables;
    std::shared_ptr<Cpu::Memory> of_buffers;
  };

 public:
  /// The type of the part for threads and devices.
  using Replicas = ReplicasPart;
  /// The type of the part for processes.
  using Workers = WorkersPart;
  using Store = StorePart;
  using Device = typename Replicas::Device;
  /// The memory of variables and buffers on the replicas' devices.
  using Memory = typename Device::Memory;
  /// The collectives between all replicas.
  using Collectives = typename Workers::template ReplicaCollectives<typename Replicas::Collectives>;
  /// The context that replica functions receive.
  using Context = ReplicaContext<Derived>;
  /// Collectives between the processes that run in the background.
  using Background = BackgroundCollectives<typename Workers::WorkerCollectives>;
  /// The strategy's device if the host can access it, otherwise the host.
  using HostDevice = std::conditional_t<Device::Space::host_accessible, Device, Cpu>;
  /// True if `run` returns a PerReplica, even for one value (spec C02).
  static constexpr bool wraps_values = Replicas::are_threads;

  BasicStrategy(const BasicStrategy&) = delete;
  BasicStrategy& operator=(const BasicStrategy&) = delete;

  /// Marks replica 0's thread as outside replica functions while it executes a merge call.
  class Merging {
   public:
    /// Begins a merge call of `strategy`; the destructor ends it.
    explicit Merging(const Derived& strategy)
        : guard_({.strategy = &strategy, .is_merging = true}), others_(strategy.BasicStrategy::order_) {}

   private:
    detail::RunGuard guard_;
    [[no_unique_address]] detail::ReplicasAtRest<CopyOrder> others_;
  };

  /// The number of this process's first replica among all replicas.
  [[nodiscard]] constexpr std::size_t first_local_replica() const noexcept {
    return workers_.rank() * replicas_.size();
  }
  /// The number of processes, and of this one.
  [[nodiscard]] constexpr std::size_t num_workers() const noexcept { return workers_.size(); }
  [[nodiscard]] constexpr std::size_t worker_rank() const noexcept { return workers_.rank(); }
  /// True if this process does the work that exactly one process must do, such as writing shared files (spec A15, M09).
  [[nodiscard]] constexpr bool is_chief() const noexcept { return worker_rank() == 0; }
  /// The threads and devices of this process's replicas.
  [[nodiscard]] const Replicas& replicas_part() const noexcept { return replicas_; }
  /// The processes and their collectives.
  [[nodiscard]] const Workers& workers_part() const noexcept { return workers_; }
  /// The collectives between the processes, for code outside replica functions.
  [[nodiscard]] constexpr decltype(auto) workers() const noexcept { return workers_.between(); }
  /// The queues of this process's replicas.
  [[nodiscard]] const typename Device::Queues& queues() const noexcept { return replicas_.queues(); }
  /// The options of collectives that calls do not override.
  [[nodiscard]] decltype(auto) communication() const noexcept { return replicas_.communication(); }
  /// The names of the devices of this process's replicas, in replica order; replicas share devices in rotation (spec
  /// D11).
  [[nodiscard]] std::vector<std::string> worker_devices() const {
    std::vector<std::string> names;
    for (const std::size_t device : replicas_.devices()) names.push_back(Device::device_name(device));
    return names;
  }

  /// Calls `fn(context, args...)` once on every replica (spec C01). Each replica gets its own value of a PerReplica
  /// argument, also inside tuples, pairs, arrays and optionals; all replicas share any other argument, and must
  /// synchronise changes to it. The replicas of a process share the captures of `fn`, but every other process has its
  /// own: shared data must be in a variable, or go through a collective. To return a view, use `lasting`.
  ///
  /// With one replica, returns the result of `fn` (spec C02), and passes exceptions on unchanged. If replicas are
  /// threads, returns their results as a PerReplica, tuples of results as tuples of PerReplicas and so on (spec C03),
  /// or nothing.
  ///
  /// An exception in a replica stops the others at their next collective, and this throws one ReplicaError. It throws
  /// PeerError for an exception in another process, and Unavailable if a process was lost. Processes that catch these
  /// can continue: a failure affects only its run. A failure after a run's last collective, which others may have
  /// completed, affects its own process only.
  ///
  /// All processes must make the same runs, even without collectives: each collective compares the numbers of runs and
  /// calls since the previous one, and throws CollectiveMismatch if they differ. Use `run_here` for a run in some
  /// processes only.
  template <class Fn, class... Args>
  DIST_ALWAYS_INLINE decltype(auto) run(Fn&& fn, Args&&... args) {
    return run_replicas<false, Fn, Args...>("run", fn, args...);
  }
  /// Runs a function on this process's replicas only, for example on a batch of `distribute_dataset_here`. Other
  /// processes neither count the run nor receive its errors, and collectives between processes throw WrongStrategy.
  /// With one process, does what `run` does.
  template <class Fn, class... Args>
  decltype(auto) run_here(Fn&& fn, Args&&... args) {
    return run_replicas<true, Fn, Args...>("run_here", fn, args...);
  }

  /// Returns a callable step with the arguments of `run`: `compile(step)(batch)`. On Xla devices, XLA compiles it as a
  /// whole at the first call (CompiledStep, which needs <dist/strategy/compiled_step.hpp>), with `line` in its errors;
  /// on other devices, a call runs it.
  template <class Step>
  [[nodiscard]] auto compile(Step step, const CompileOptions& options = {}, SourceLine line = here()) {
    require_outside("compile", "the step is already running");
    return dist::compile(derived(), std::move(step), options, line);
  }

  /// Divides every global batch of `dataset` among the replicas, and prefetches batches in the background (spec C17,
  /// I01, I15). Returns a range of PerReplica elements for `run`. `options` set the division and the number of
  /// prefetched batches.
  ///
  /// Call it outside the loop over epochs: each loop over the result is a new epoch, with a new shuffle (spec I31).
  /// Needs <dist/data.hpp>.
  template <class Dataset, class Options = data::InputOptions>
  [[nodiscard]] auto distribute_dataset(Dataset dataset, const Options& options = {}) const {
    return replicas_.distribute_dataset(std::move(dataset), input_context(), options, agreement());
  }

  /// Divides every batch of `dataset` among this process's replicas; every process iterates over the whole dataset
  /// independently.
  template <class Dataset, class Options = data::InputOptions>
  [[nodiscard]] auto distribute_dataset_here(Dataset dataset, const Options& options = {}) const requires wraps_values {
    const std::size_t replicas = this->num_local_replicas();
    return replicas_.distribute_dataset(std::move(dataset), InputContext{1, 0, replicas}, options, data::NoAgreement{});
  }

  /// Returns a range over the dataset of `make(InputContext)`, batched by the per-replica batch size; each step takes
  /// one batch per replica (spec C18, I17). The data is not divided, sharded or prefetched. Under Mirrored,
  /// `data::PipelinePerReplica{}` calls `make` once per replica, for separate datasets (spec I18). With one replica,
  /// returns the dataset itself (spec A21).
  template <class Make, class Options = data::PipelinePerWorker>
  [[nodiscard]] auto distribute_datasets_from_function(Make&& make, const Options& options = {}) const {
    constexpr bool one_for_all = std::same_as<Options, data::PipelinePerWorker>;
    static_assert(one_for_all || wraps_values,
                  "a strategy of one replica has one input pipeline: data::PipelinePerReplica is for Mirrored");
    static_assert(one_for_all || !wraps_values || !Store::shared,
                  "CentralStorage has one input pipeline for all replicas: data::PipelinePerReplica is for Mirrored");
    if constexpr (one_for_all || wraps_values)
      return replicas_.distribute_datasets_from_function(make, input_context(), options, agreement());
  }

  /// The context of this process's pipeline (spec I20).
  [[nodiscard]] InputContext input_context() const {
    return {workers_.size(), workers_.rank(), this->num_replicas_in_sync()};
  }
  /// The protocol with which processes agree on the end of their data (spec I24).
  [[nodiscard]] auto agreement() const {
    [[maybe_unused]] const auto turn = take_turn();
    return workers_.agreement();
  }

  /// Returns collectives that combine copies of all replicas while the replicas compute. Created at the first call, and
  /// after a failure: outside replica functions, and a collective call of the processes.
  [[nodiscard]] std::shared_ptr<Background> background() requires wraps_values {
    require_outside("background", "use an object made before run, such as an nn::OverlappedAllReduce");
    [[maybe_unused]] const auto turn = take_turn();
    if (!background_ || background_->is_broken()) background_ = workers_.template make_background<Background>();
    return background_;
  }

  /// Throws WrongStrategy inside a replica function (spec B03, B09).
  [[nodiscard]] Scope scope() {
    require_outside("scope", "use the replica context, or its merge_call");
    return Scope{derived()};
  }

  /// Creates a variable with one copy per replica, or one for all under CentralStorage, with replica 0's initial value,
  /// or with several processes the chief's (spec A16, G06).
  ///
  /// `initial` is one number for all elements, a TensorView of the same shape, a contiguous range with as many numbers,
  /// such as a std::vector, or a function that fills a `TensorView<T>`. Optimizers reject a variable that is not
  /// `trainable` with InvalidArgument; by default, OnWrite variables are (spec G03). Throws ShapeMismatch,
  /// InvalidArgument if T cannot represent a number, OutOfMemory, and WrongStrategy inside a replica function.
  template <class T, class Sync = OnWrite, class Agg = None, class Initial = T>
  [[nodiscard]] DistributedVariable<T, Sync, Agg, Device> variable(
      Shape shape, Initial&& initial = T{}, std::string name = "Variable",
      Trainable trainable = Trainable::by_synchronization) {
    require_outside("variable", "make it before run, or give variable the replica context as its first argument");
    return detail::make_variable<DistributedVariable<T, Sync, Agg, Device>>(Scope{derived()}, memory_, shape, initial,
                                                                            std::move(name), trainable);
  }

  /// Creates one variable for all in a replica function (spec B15), with replica 0's initial value. A collective call.
  /// Throws CollectiveMismatch if shapes or names differ.
  template <class T, class Sync = OnWrite, class Agg = None, InReplica Context, class Initial = T>
  [[nodiscard]] std::shared_ptr<DistributedVariable<T, Sync, Agg, Device>> variable(
      const Context& replica, Shape shape, Initial&& initial = T{}, std::string name = "Variable",
      Trainable trainable = Trainable::by_synchronization) {
    return replica.merge_call(
        [&](auto&, const auto& shapes, const auto& names) {
          detail::require_same_on_all_replicas(shapes, names);
          return std::make_shared<DistributedVariable<T, Sync, Agg, Device>>(
              variable<T, Sync, Agg>(shape, std::forward<Initial>(initial), std::move(name), trainable));
        },
        shape, name);
  }

  /// Error messages for calls without the element type.
  template <bool has_type = false, class First, class... Rest>
  auto variable(const First&, const Rest&...) {
    using Variable = DistributedVariable<float, OnWrite, None, Device>;
    static_assert(has_type || InReplica<First>,
                  "a variable needs the type of its elements: strategy.variable<float>(shape)");
    static_assert(has_type || !InReplica<First>,
                  "a variable needs the type of its elements: strategy.variable<float>(replica, shape)");
    return detail::refused<std::conditional_t<InReplica<First>, std::shared_ptr<Variable>, Variable>>();
  }

  /// True if this strategy created the variable or buffer (spec D09).
  template <class Variable>
  [[nodiscard]] bool owns(const Variable& variable) const noexcept {
    using On = typename Variable::Device;
    return variable.memory() == memory_on<On>() || variable.memory() == replica_memory_on<On>();
  }

  /// Creates a buffer of `shape` per replica, for data within a step. Throws OutOfMemory, and WrongStrategy inside a
  /// replica function.
  template <class T>
  [[nodiscard]] ReplicaBuffer<T, Device> buffer(Shape shape, std::string name = "Buffer") {
    require_outside("buffer", "use a Tensor in the replica function, or make the buffer before run");
    return {replica_memory_, shape, std::move(name)};
  }

  /// Create a variable and a buffer in host memory on any device, for data that the host reads in every step, such as
  /// counters.
  template <class T, class Sync = OnWrite, class Agg = None, class Initial = T>
  [[nodiscard]] DistributedVariable<T, Sync, Agg, HostDevice> host_variable(
      Shape shape, Initial&& initial = T{}, std::string name = "Variable",
      Trainable trainable = Trainable::by_synchronization) {
    require_outside("host_variable", "make it before run");
    make_host_memory();
    return detail::make_variable<DistributedVariable<T, Sync, Agg, HostDevice>>(
        Scope{derived()}, memory_on<HostDevice>(), shape, initial, std::move(name), trainable);
  }
  /// Returns a buffer with one array per replica of this process, in host memory on any device. Throws OutOfMemory, and
  /// WrongStrategy inside a replica function.
  template <class T>
  [[nodiscard]] ReplicaBuffer<T, HostDevice> host_buffer(Shape shape, std::string name = "Buffer") {
    require_outside("host_buffer", "use a Tensor in the replica function, or make the buffer before run");
    make_host_memory();
    return {replica_memory_on<HostDevice>(), shape, std::move(name)};
  }

  /// The strategy's memory of variables, or host memory.
  template <class On>
  [[nodiscard]] const auto& memory_on() const noexcept {
    if constexpr (std::same_as<On, Device>)
      return memory_;
    else
      return host_memory_.of_variables;
  }
  /// The strategy's memory of buffers, or host memory.
  template <class On>
  [[nodiscard]] const auto& replica_memory_on() const noexcept {
    if constexpr (std::same_as<On, Device>)
      return replica_memory_;
    else
      return host_memory_.of_buffers;
  }

  /// Reduces the values of all replicas, or the copies of a variable; values also along axes.
  template <class Op, class Value>
  [[nodiscard(DIST_REDUCE_RETURNS)]] auto reduce(Op op, const Value& value) const {
    require_outside("reduce", "use all_reduce, or reduce in a merge_call");
    return dist::reduce(outside(), op, value);
  }
  /// Reduces like the overload without options, which define for example a timeout.
  template <class Op, class Value, std::same_as<CommunicationOptions> Options>
  [[nodiscard(DIST_REDUCE_RETURNS)]] auto reduce(Op op, const Value& value, const Options& options) const {
    require_outside("reduce", "use all_reduce, or reduce in a merge_call");
    return dist::reduce(outside(), op, value, options);
  }
  /// Reduces the values of all replicas and the elements along `axes`. Throws InvalidArgument if an axis is out of
  /// range.
  template <class Op, class Value>
  [[nodiscard(DIST_REDUCE_RETURNS)]] auto reduce(Op op, const Value& value, Axes axes,
                                                 const CommunicationOptions& options = {}) const {
    require_outside("reduce", "use all_reduce, or reduce in a merge_call");
    return dist::reduce(outside(), op, value, axes, options);
  }
  /// Returns the values of all replicas, concatenated along `axis` in replica order.
  template <class Value>
  [[nodiscard(DIST_GATHER_RETURNS)]] auto gather(const Value& value, int axis,
                                                 const CommunicationOptions& options = {}) const {
    require_outside("gather", "use all_gather");
    return dist::gather(outside(), value, axis, options);
  }

  /// Returns a copy of `value` for each replica of this process (spec D03).
  template <class Value>
  [[nodiscard("broadcast_to returns the copies: copies = strategy.broadcast_to(value)")]] PerReplica<Value>
  broadcast_to(const Value& value) const {
    require_outside("broadcast_to", "every replica already has its own value");
    return PerReplica<Value>(this->num_local_replicas(), [&](std::size_t) -> const Value& { return value; });
  }
  /// Reduces, and returns a copy of the result for each replica of this process (spec D01).
  template <class Op, class Value>
  [[nodiscard(DIST_REDUCE_RETURNS)]] auto reduce_to(Op op, const Value& value, EveryReplica,
                                                    const CommunicationOptions& options = {}) const {
    return broadcast_to(reduce(op, value, options));
  }
  /// Reduces, and writes the result to every copy of a variable (spec D01).
  template <class Op, class Value, class T, class Sync, class Agg, class On>
  void reduce_to(Op op, const Value& value, DistributedVariable<T, Sync, Agg, On>& destination,
                 const CommunicationOptions& options = {}) {
    destination.assign(scope(), reduce(op, value, options));
  }
  /// Reduces each of the values, and returns the results as a tuple (spec D02).
  template <class Op, class... Values>
  [[nodiscard(DIST_REDUCE_RETURNS)]] auto batch_reduce(Op op, const Values&... values) const {
    return std::tuple{reduce(op, values)...};
  }
  /// `batch_reduce_to(op, std::tie(value, variable), …)` calls `reduce_to` for each pair (spec D02).
  template <class Op, class... Values, class... Destinations>
  void batch_reduce_to(Op op, const std::tuple<Values&, Destinations&>&... pairs) {
    (reduce_to(op, std::get<0>(pairs), std::get<1>(pairs)), ...);
  }

  /// Calls `fn(context, args...)` for each copy of a variable.
  template <class Variable, class Fn, class... Args>
    requires(!InReplica<Variable>)
  auto update(const Variable& variable, Fn&& fn, Args&&... args) {
    require_outside("update", "give update the replica context as its first argument");
    return dist::update(Scope{derived()}, variable, fn, args...);
  }
  /// Calls `fn(context, args...)` for this replica's copy of a variable, in a replica function.
  template <InReplica Context, class Variable, class Fn, class... Args>
  void update(const Context& replica, const Variable& variable, Fn&& fn, Args&&... args) {
    dist::update(replica, variable, fn, args...);
  }

  /// Returns `fn(ValueContext)` for each replica of this process (spec C19): a PerReplica if replicas are threads, the
  /// value itself under Default and OneDevice.
  template <std::invocable<ValueContext> Fn>
  [[nodiscard]] auto values_from_function(Fn&& fn) const {
    const auto value_of = [&](std::size_t replica) {
      return fn(ValueContext{ReplicaId{first_local_replica() + replica}, this->num_replicas_in_sync()});
    };
    if constexpr (wraps_values) {
      return regroup(PerReplica<std::decay_t<decltype(value_of(0))>>(this->num_local_replicas(), value_of));
    } else {
      return value_of(0);
    }
  }

  /// Returns the values of this process's replicas, in replica order (spec C15): of a structure of PerReplicas, each
  /// replica's structure. Other values count as one. For a temporary, such as a result of `run`, returns a PerReplica
  /// that owns the values.
  template <class Given>
  [[nodiscard]] auto local_results(Given&& value) const {
    using Value = std::remove_cvref_t<Given>;
    constexpr bool is_temporary = std::same_as<Given, Value>;
    if constexpr (is_per_replica<Value> && is_temporary) {
      return std::move(value);
    } else if constexpr (is_per_replica<Value>) {
      return std::as_const(value).values();
    } else if constexpr (detail::holds_per_replica<Value>) {
      return detail::each_replica(value, this->num_local_replicas());
    } else if constexpr (is_temporary) {
      return PerReplica<Value>(1, [&](std::size_t) { return std::move(value); });
    } else {
      return std::span<const Value>{&value, 1};
    }
  }

 protected:
  /// The options of the part for threads and devices.
  using ReplicaOptions = typename Replicas::Options;

  /// `of_workers` are the arguments of the workers' constructor. Throws InvalidArgument for invalid options, and
  /// OutOfMemory if the system lacks threads or address space.
  template <class... OfWorkers>
  explicit BasicStrategy(const ReplicaOptions& options, OfWorkers&&... of_workers)
      : workers_(std::forward<OfWorkers>(of_workers)...),
        replicas_(workers_.adjusted(options)),
        collective_state_(workers_, replicas_),
        order_(replicas_.queues(), replicas_.size()) {
    if constexpr (has_peers) {
      workers_.admit(replicas_.size());
      replicas_.set_ids(first_local_replica(), this->num_replicas_in_sync());
    }
    const auto devices = replicas_.devices();
    replica_memory_ = workers_.template memory<Memory>(devices, replicas_, collective_state_);
    if constexpr (!Store::shared)
      memory_ = replica_memory_;
    else if constexpr (Device::Space::host_accessible)
      memory_ = workers_.template memory<Memory>(std::span<const std::size_t>{devices}.first(Store::copies(size())),
                                                 replicas_, collective_state_);
    else
      memory_ = Memory::on_host(devices);
  }
  ~BasicStrategy();

  /// Throws WrongStrategy inside a replica function of any strategy.
  void require_outside(std::string_view method, std::string_view instead) const;

 private:
  static constexpr bool has_peers = !CollectivesOfOne<typename Workers::WorkerCollectives>;

  [[nodiscard]] Derived& derived() noexcept { return static_cast<Derived&>(*this); }
  [[nodiscard]] const Derived& derived() const noexcept { return static_cast<const Derived&>(*this); }
  [[nodiscard]] CrossReplicaContext<const Derived> outside() const {
    return CrossReplicaContext<const Derived>{derived()};
  }
  [[nodiscard]] std::size_t size() const noexcept { return replicas_.size(); }

  /// Throws WrongStrategy inside a replica function of another strategy.
  void require_outside_others(std::string_view method) const {
    detail::require_outside_other_strategies(&derived(), made_in_, method);
  }

  /// Serialises calls of threads that involve other processes.
  [[nodiscard]] auto take_turn() const {
    if constexpr (has_peers)
      return replicas_.take_turn();
    else
      return NoMemory{};
  }

  template <bool alone, class Fn, class... Args>
  DIST_ALWAYS_INLINE decltype(auto) run_replicas(std::string_view method, Fn& fn, Args&... args) {
    if constexpr (detail::require_replica_function<Fn, Context, Args...>()) {
      const auto call = [&]([[maybe_unused]] std::size_t replica, const auto& of_process, const auto& queue)
                            DIST_INLINE_LAMBDA -> decltype(auto) {
        Context context{derived(), workers_.join(of_process, queue, collective_state_), queue};
        return fn(context, select_replica(replica, args)...);
      };
      using Returned = std::decay_t<decltype(call(std::size_t{0}, std::declval<const typename Replicas::Collectives&>(),
                                                  std::declval<const typename Replicas::Queue&>()))>;
      using Result = typename decltype(detail::require_lasting_result<Returned>())::type;
      (require_value_per_replica(this->num_local_replicas(), args), ...);
      require_outside_others(method);
      if constexpr (wraps_values)
        return run_all<alone, Fn, Result>(call);
      else if constexpr (std::same_as<Result, Returned>)
        return replicas_.run(&derived(), call);
      else
        return Result(replicas_.run(&derived(), call));
    }
  }

  /// Marks the calls of this process as made in a run, which the other processes compare.
  class RunScope {
   public:
    RunScope(const typename Workers::WorkerCollectives& workers, Background* background,
             std::optional<std::uint64_t> kind)
        : workers_(workers), background_(background) {
      workers_.begin_attempt();
      if (kind)
        workers_.communicator().begin_run(*kind);
      else
        workers_.communicator().begin_alone();
      if (background_ != nullptr) background_->begin_run(!kind);
    }
    RunScope(const RunScope&) = delete;
    RunScope& operator=(const RunScope&) = delete;
    ~RunScope() {
      workers_.communicator().end_run();
      if (background_ != nullptr) background_->end_run();
    }

   private:
    const typename Workers::WorkerCollectives& workers_;
    Background* background_;
  };
  /// A hash of the function's type, equal in every process. Two functions may share it.
  template <class Fn>
  [[nodiscard]] static constexpr std::uint64_t kind_of() {
    std::uint64_t hash = 0;
    for (const char letter : detail::type_name<Fn>()) hash = hash * 31 + static_cast<unsigned char>(letter);
    return hash;
  }

  template <bool alone, class Fn, class Result, class Call>
  auto run_all(const Call& call) {
    if constexpr (std::is_void_v<Result>) {
      run_threads<alone, Fn>(call);
    } else if constexpr (detail::require_place_of_result<Result>()) {
      PerReplica<Result> results(this->num_local_replicas());
      run_threads<alone, Fn>([&](std::size_t replica, const auto& of_process, const auto& queue) {
        results[replica] = call(replica, of_process, queue);
      });
      return regroup(std::move(results));
    }
  }
  template <bool alone, class Fn, class Call>
  void run_threads(const Call& call) {
    constexpr std::optional<std::uint64_t> kind = alone ? std::nullopt : std::optional{kind_of<Fn>()};
    run_among_peers(kind, [&](std::size_t replica, const typename Replicas::Queue& queue) {
      call(replica, replicas_.collectives(replica, queue), queue);
    });
  }
  using ReplicaCall = detail::FunctionRef<void(std::size_t replica, const typename Replicas::Queue& queue)>;
  /// Makes a run of this kind, or, if empty, of this process only. Sends its errors to the others.
  void run_among_peers(std::optional<std::uint64_t> kind, ReplicaCall call);

  void make_host_memory() {
    if constexpr (!std::same_as<HostDevice, Device>) {
      if (host_memory_.of_variables != nullptr) return;
      host_memory_.of_variables = std::make_shared<Cpu::Memory>(Store::copies(size()));
      host_memory_.of_buffers = std::make_shared<Cpu::Memory>(size());
    }
  }

  const void* made_in_ = detail::run_here.strategy;
  [[no_unique_address]] Workers workers_;  // before the replicas, whose options depend on them
  [[no_unique_address]] Replicas replicas_;
  [[no_unique_address]] typename Workers::CollectiveState collective_state_;
  [[no_unique_address]] mutable CopyOrder order_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<Memory> replica_memory_;
  [[no_unique_address]] std::conditional_t<std::same_as<HostDevice, Device>, NoMemory, HostArenas> host_memory_;
  std::shared_ptr<std::conditional_t<wraps_values, Background, NoMemory>> background_;
};

template <class Derived, class ReplicasPart, class WorkersPart, VariableStore StorePart>
BasicStrategy<Derived, ReplicasPart, WorkersPart, StorePart>::~BasicStrategy() = default;

template <class Derived, class ReplicasPart, class WorkersPart, VariableStore StorePart>
void BasicStrategy<Derived, ReplicasPart, WorkersPart, StorePart>::require_outside(std::string_view method,
                                                                                   std::string_view instead) const {
  if (detail::run_here.is_replica_function() && detail::run_here.strategy == &derived())
    detail::refuse_inside(method, instead);
  require_outside_others(method);
}

template <class Derived, class ReplicasPart, class WorkersPart, VariableStore StorePart>
void BasicStrategy<Derived, ReplicasPart, WorkersPart, StorePart>::run_among_peers(
    [[maybe_unused]] std::optional<std::uint64_t> kind, [[maybe_unused]] ReplicaCall call) {
  [[maybe_unused]] const auto turn = take_turn();
  [[maybe_unused]] std::optional<std::conditional_t<has_peers, RunScope, bool>> place;
  if constexpr (has_peers)
    if (detail::run_here.strategy != &derived()) place.emplace(workers(), background_.get(), kind);
  try {
    const detail::ReplicasAtWork<CopyOrder> at_work{order_};
    if constexpr (wraps_values) replicas_.run(&derived(), call);
  } catch (const std::exception& error) {
    const auto* const in_replica = dynamic_cast<const ReplicaError*>(&error);
    if (in_replica == nullptr) throw;
    if constexpr (has_peers) workers().cancel(error);  // they would wait for this process
    // Afterwards, because work in progress may need a peer that waits for this process.
    if constexpr (wraps_values)
      if (background_) background_->cancel(error);
    if constexpr (has_peers) detail::rethrow_failure_of_peer(in_replica->cause());
    throw;
  }
}

}  // namespace dist
