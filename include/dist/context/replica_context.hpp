#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/comm/all_reduce_slices.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/packing.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/share.hpp>
#include <dist/context/agreed_structure.hpp>
#include <dist/context/all_gather_tensors.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/operand.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/trace.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/device/queue_scopes.hpp>

namespace dist {

// Declared here, for programs that do not include their headers.
template <class Byte>
struct NeighborMessage;
using SendTo = NeighborMessage<const std::byte>;
using ReceiveFrom = NeighborMessage<std::byte>;
template <class Message>
class MessageList;
template <class Replica>
class Subgroup;

/// All replicas of strategy or replica context `S` share one address space: they are threads of one process, or there
/// is only one. They then share the objects that a replica function captures by reference; under a strategy of several
/// processes, such as MultiWorker, each process has its own. Code that relies on sharing requires it: `template
/// <dist::ReplicasShareMemory Strategy>`.
template <class S>
concept ReplicasShareMemory = requires(const typename std::remove_cvref_t<S>::Collectives& collectives) {
  requires SharesMemory<std::remove_cvref_t<decltype(collectives.communicator())>> ||
      GroupOfOne<std::remove_cvref_t<decltype(collectives.communicator())>>;
};

namespace detail {

/// A variable or buffer with a copy per replica.
template <class Variable, class Context>
concept HasComponentFor = requires(const Variable& variable, const Context& replica) {
  variable.component(replica);
};

/// A read-only span in a replica's memory.
template <class Span>
struct ReadOnly {};
template <class T>
struct ReadOnly<std::span<T>> : std::type_identity<std::span<const T>> {};
template <class T, MemorySpace Where>
struct ReadOnly<DeviceSpan<T, Where>> : std::type_identity<DeviceSpan<const T, Where>> {};
/// A std::span or a DeviceSpan.
template <class S>
concept ElementSpan = requires {
  typename ReadOnly<S>::type;
};

/// Checks that `merge_call` can call `Fn`, with one error message.
template <class Fn, class Scope, class... Args>
[[nodiscard]] constexpr bool require_merge_function() {
  constexpr bool callable = is_callable<std::remove_reference_t<Fn>, Scope&, std::remove_reference_t<Args>&...>();
  static_assert(
      callable,
      "merge_call calls its function with the cross-replica context by reference, then with the PerReplica of "
      "each argument: this function does not take these");
  return callable;
}

}  // namespace detail

/// The context of a replica function: `run` passes one to each replica (spec B04, E). All replicas must make collective
/// calls in the same order (spec E12).
///
/// All calls resolve at compile time. Under a strategy with one replica, `num_replicas_in_sync()` is a constant and the
/// collectives are identities.
template <class S>
class ReplicaContext {
 public:
  /// The type of the strategy.
  using Strategy = S;
  /// The collectives between all replicas.
  using Collectives = typename S::Collectives;
  /// The type of the replica's device.
  using Device = typename S::Device;
  /// The type of the device's queue.
  using Queue = typename Device::Queue;

  /// Made by `run` for each replica.
  ReplicaContext(S& strategy, Collectives collectives, Queue queue)
      : strategy_(&strategy), collectives_(collectives), queue_(queue) {}

  /// The strategy that runs the function. Its collective functions, such as `reduce`, throw WrongStrategy here.
  [[nodiscard]] S& strategy() const noexcept {
    DIST_EXPECT_INNER(is_in_its_run());
    return *strategy_;
  }
  /// The collectives of the strategy's policy, without the checks and conversions of this class.
  [[nodiscard]] const Collectives& collectives() const noexcept { return collectives_; }
  /// The queue of this replica's device. Unless it is the host, work such as `for_each` may run asynchronously.
  [[nodiscard]] const Queue& queue() const noexcept { return queue_; }

  /// The replica's number across all processes, from 0 to `num_replicas_in_sync() - 1` (spec E01).
  [[nodiscard]] ReplicaId replica_id() const noexcept { return ReplicaId{collectives_.communicator().rank()}; }
  /// The number of replicas of all processes.
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return collectives_.communicator().size(); }
  /// The replica's number in its process.
  [[nodiscard]] std::size_t local_index() const noexcept { return replicas_here().rank(); }

  /// Returns the reduction of all replicas' values, the same on every replica (spec E03). A collective call, like all
  /// overloads. Named contiguous ranges of numbers (std::span, std::vector, Eigen's matrices) are reduced in place. All
  /// other operands are values whose reduction is returned: numbers, tensors, structures (including std::array), plain
  /// structs, and temporary ranges.
  ///
  /// `options.timeout` limits the wait for other replicas, by default the strategy's timeout (spec H13).
  template <Reducible T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] T all_reduce(Op op, T value, const CommunicationOptions& options = {}) const {
    all_reduce(op, std::span<T>{&value, 1}, options);
    return value;
  }
  /// Reduces in place, element by element. Throws CollectiveMismatch if counts differ.
  template <Reducible T, class Op>
  void all_reduce(Op op, std::span<T> values, const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_reduce_op<Op, T>()) reduce_in_place(op, values, options);
  }
  /// Reduces any contiguous range of numbers, of complex numbers (sum and mean), or of values of numbers of one type,
  /// such as points. Throws InvalidArgument for gaps between elements.
  template <class Range, class Op>
    requires NumberRange<std::remove_reference_t<Range>>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] auto all_reduce(Op op, Range&& range,
                                                         const CommunicationOptions& options = {}) const
      -> std::conditional_t<std::is_lvalue_reference_v<Range>, void, std::remove_cv_t<Range>> {
    if constexpr (std::is_lvalue_reference_v<Range>) {
      reduce_numbers_in(op, range, options);
    } else {
      std::remove_cv_t<Range> values = std::forward<Range>(range);
      reduce_numbers_in(op, values, options);
      return values;
    }
  }

  /// Reduces a tensor. Throws ShapeMismatch if shapes differ between replicas (spec H09).
  template <Reducible T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] Tensor<T> all_reduce(Op op, Tensor<T> values,
                                                              const CommunicationOptions& options = {}) const {
    PerReplica<Shape> shapes(num_replicas_in_sync());
    collective("all_reduce", options, [&](const Collectives& ops) {
      ops.all_gather_values("all_reduce of a tensor", values.shape(), std::span<Shape>{shapes.begin(), shapes.size()});
    });
    detail::require_equal_shapes(shapes.values());
    all_reduce(op, values.elements(), options);
    return values;
  }
  /// Reduces a complex number, or every member of a tuple, pair, array, optional or plain struct, recursively. Throws
  /// ShapeMismatch if an optional has a value on some replicas only, and CollectiveMismatch if structures differ.
  template <class Values, class Op>
    requires Structure<Values> || detail::NumbersValue<Values> || Aggregate<Values>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] Values all_reduce(Op op, Values values,
                                                           const CommunicationOptions& options = {}) const {
    if constexpr (detail::NumbersValue<Values>) {
      reduce_numbers_in(op, values, options);
    } else if constexpr (detail::require_memberwise_op<Op, Values>()) {
      detail::as_asked(collectives_, options, [&](const Collectives& ops) {
        const detail::AgreedStructure<Collectives> agreed{ops, "replica", values};
        reduce_members(op, values, options);
      });
    }
    return values;
  }
  /// Returns the slices of all replicas, concatenated in replica order; a mean divides their values by the number of
  /// replicas (spec H10). Numbers of rows may differ. Throws ShapeMismatch if the arrays' shapes differ.
  template <class T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] IndexedSlices<T> all_reduce(Op op, const IndexedSlicesView<T>& slices,
                                                                     const CommunicationOptions& options = {}) const {
    return collective("all_reduce", options,
                      [&](const Collectives& ops) { return all_reduce_slices(ops, op, slices); });
  }
  /// Combines the replicas' slices, like the overload for a view.
  template <class T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] IndexedSlices<T> all_reduce(Op op, const IndexedSlices<T>& slices,
                                                                     const CommunicationOptions& options = {}) const {
    return all_reduce(op, slices.view(), options);
  }

  /// Reduces several tensors in place, with the same extents on every replica (spec E03, H09, H12, H13), packed
  /// according to `options.bytes_per_pack` or the strategy's options. Adjacent tensors are not copied.
  template <Reducible T, class Op>
  void all_reduce(Op op, std::span<const std::span<T>> tensors, const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_reduce_op<Op, T>()) {
      const CommunicationOptions merged = strategy_->communication().merge(options);
      collective("all_reduce", merged, [&](const Collectives& ops) {
        require_equal_extents(ops, tensors);
        batch_all_reduce(ops, op, tensors, PackByBytes{merged.bytes_per_pack});
      });
    }
  }

  /// Returns the reduction of the replicas' copies of a variable, regardless of its aggregation (spec E04, G25).
  template <class Op, detail::HasComponentFor<ReplicaContext> Variable>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] Tensor<typename Variable::Element> all_reduce(
      Op op, const Variable& variable, const CommunicationOptions& options = {}) const {
    Tensor<typename Variable::Element> values{variable.shape()};
    const auto queue = variable.queue(*this);
    queue.copy(variable.component(*this), values.elements());
    queue.wait();
    return all_reduce(op, std::move(values), options);
  }

  /// Returns all replicas' tensors, concatenated along `axis` in replica order, the same on every replica (spec E06).
  /// Throws ShapeMismatch for scalars and differences along other axes, and InvalidArgument if `axis` is out of range.
  /// A collective call.
  template <class T>
    requires Reducible<std::remove_const_t<T>>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] Tensor<std::remove_const_t<T>> all_gather(
      TensorView<T> mine, int axis, const CommunicationOptions& options = {}) const {
    return collective("all_gather", options,
                      [&](const Collectives& ops) { return all_gather_tensors(ops, "replica", mine, axis); });
  }
  /// Gathers a tensor, like the overload for a view.
  template <Reducible T>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] Tensor<T> all_gather(const Tensor<T>& mine, int axis,
                                                              const CommunicationOptions& options = {}) const {
    return all_gather(mine.view(), axis, options);
  }
  /// Gathers a range, which has one axis, or two if its elements consist of several numbers.
  template <NumberRange Range>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] auto all_gather(const Range& mine, int axis,
                                                         const CommunicationOptions& options = {}) const {
    return all_gather(detail::view_of_numbers(mine), axis, options);
  }

  /// Error messages for unsupported operands.
  template <class Value, class Op>
    requires(!detail::CollectiveOperand<Value>)
  auto all_reduce(Op, const Value&, const CommunicationOptions& = {}) const {
    constexpr bool on_device = detail::is_on_device<Value>;
    static_assert(!on_device,
                  "all_reduce changes memory of a device in place: give a span of elements that may change, such as "
                  "buffer.component(replica) or view.elements()");
    static_assert(on_device,
                  "all_reduce takes numbers, tensors, contiguous ranges of numbers, and structures of these: give a "
                  "dist::Tensor, a std::span, or the members of this value");
    return detail::refused<Value>();
  }
  /// Error messages for unsupported operands.
  template <class Value>
    requires(Reducible<Value> || !detail::CollectiveOperand<Value>)
  [[nodiscard]] auto all_gather(const Value&, int, const CommunicationOptions& = {}) const {
    detail::require_host_access<detail::MemorySpaceOf<Value>>();
    static_assert(!Reducible<Value>, "all_gather takes a tensor; a number has no axis: give a tensor of shape [1]");
    static_assert(detail::satisfied < Reducible<Value> || detail::is_on_device < Value >>,
                  "all_gather takes tensors and contiguous ranges of numbers: give a dist::Tensor or a std::span");
    return detail::refused<Tensor<float>>();
  }

  /// Returns the value of replica `root` on every replica. As in `all_reduce`, named contiguous ranges of numbers are
  /// overwritten in place, with equal counts; other values are returned: tensors with the root's shape, and optionals
  /// with a value if the root's has one. A collective call, with the same `root` on every replica. Throws
  /// InvalidArgument if `root` is out of range.
  template <class Value>
  [[nodiscard(DIST_BROADCAST_RETURNS)]] auto broadcast(Value&& value, std::size_t root,
                                                       const CommunicationOptions& options = {}) const
      -> std::conditional_t<NumberRange<std::remove_reference_t<Value>> && std::is_lvalue_reference_v<Value>, void,
                            std::remove_cvref_t<Value>> {
    require_root(root);
    if constexpr (NumberRange<std::remove_reference_t<Value>> && std::is_lvalue_reference_v<Value>) {
      broadcast_into(value, root, options);
    } else {
      std::remove_cvref_t<Value> values = std::forward<Value>(value);
      const detail::AgreedStructure<Collectives> agreed{collectives_, std::type_identity<decltype(values)>{}};
      broadcast_into(values, root, options);
      return values;
    }
  }

  /// Synchronises the replicas of this process, and calls `fn(scope, args...)` once, in the cross-replica context, on
  /// the first replica's thread. Each argument is a PerReplica of the replicas' arguments (spec E08); with one replica
  /// without threads, the argument itself (spec E09).
  ///
  /// Each replica gets the result of `fn`: its own value of a PerReplica, or a copy of any other result. A collective
  /// call; an exception from `fn` ends the run.
  template <class Fn, class... Args>
  auto merge_call(Fn&& fn, Args&&... args) const {
    CrossReplicaContext<S> scope{*strategy_};
    const auto comm = replicas_here();
    if constexpr (!SharesMemory<std::remove_cv_t<decltype(comm)>>) {
      if constexpr (detail::require_merge_function<Fn, CrossReplicaContext<S>, Args...>()) return fn(scope, args...);
    } else if constexpr (detail::require_merge_function<Fn, CrossReplicaContext<S>,
                                                        PerReplica<std::decay_t<Args>>...>()) {
      using Mine = std::tuple<std::decay_t<Args>...>;
      const auto merged = [&] {
        const typename S::Merging merging{*strategy_};
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
          [[maybe_unused]] auto regrouped = std::tuple{PerReplica<std::tuple_element_t<I, Mine>>(
              comm.size(), [&](std::size_t rank) -> std::tuple_element_t<I, Mine>&& {
                return std::move(std::get<I>(*comm.template peer_to_write<Mine>(rank)));
              })...};
          return fn(scope, std::get<I>(regrouped)...);
        }
        (std::index_sequence_for<Args...>{});
      };
      using Result = std::decay_t<decltype(merged())>;
      // Replicas with other types do not match.
      Mine mine{std::forward<Args>(args)...};
      const detail::Borrowed loan_of_mine{comm};
      comm.publish({.operation = "merge_call",
                    .reduction = detail::type_name<Mine>(),
                    .elements = sizeof...(Args),
                    .dtype = "arguments"},
                   {.write = &mine});
      if constexpr (std::is_void_v<Result>) {
        if (comm.rank() == 0) {
          merged();
          queue_.enter();  // `fn` may have used the queues of other replicas
        }
        comm.barrier();
      } else {
        std::optional<Result> result;
        const detail::Borrowed loan_of_result{comm};
        if (comm.rank() == 0) {
          result.emplace(merged());
          require_value_per_replica(comm.size(), *result, "merge_call's function returned");
          queue_.enter();
        }
        comm.publish(CollectiveCall{.operation = "merge_call", .reduction = detail::type_name<Result>()},
                     {.read = &result});
        auto own = select_copy(comm.rank(), **comm.template peer<std::optional<Result>>(0));
        comm.barrier();  // until then, replica 0 keeps the result
        return own;
      }
    }
  }

  /// Returns this replica's value of a PerReplica, also inside structures (spec F06).
  template <class Value>
  [[nodiscard]] decltype(auto) select(Value& value) const {
    return select_replica(local_index(), value);
  }

  /// Reduces `gradient` over the replicas and applies it to `mirror` in one pass over memory: `mirror[i] = update(i,
  /// mirror[i], reduced[i])`. Each replica updates a share of the elements, in any order (see ElementUpdate). `mirror`
  /// must be equal on all replicas before, and is bit-identical afterwards. `gradient` is unchanged. Throws
  /// ShapeMismatch if lengths differ. A collective call.
  template <detail::ElementSpan Gradient, detail::ElementSpan Span, class Op, class Update>
    requires std::convertible_to<Gradient, typename detail::ReadOnly<Span>::type>
  void reduce_and_apply(Op op, Gradient gradient, Span mirror, const Update& update,
                        const CommunicationOptions& options = {}) const {
    using T = typename Span::element_type;
    if constexpr (detail::require_reduce_op<Op, T>() && detail::require_element_update<Update, T>()) {
      const typename detail::ReadOnly<Span>::type given = gradient;
      require_gradient_for_each("reduce_and_apply", given.size(), mirror.size());
      collective<Span>("reduce_and_apply", options,
                       [&](const Collectives& ops) { ops.reduce_and_apply(op, given, mirror, update); });
    }
  }

  /// Reduces elements in device memory. As for `broadcast` and `reduce_and_apply` of such elements, the work is
  /// enqueued in the replicas' queues, so later work there sees the result. Collectives of host memory are complete
  /// when they return, on any device.
  template <Reducible T, MemorySpace Where, class Op>
  void all_reduce(Op op, DeviceSpan<T, Where> values, const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_reduce_op<Op, T>())
      collective<DeviceSpan<T, Where>>("all_reduce", options,
                                       [&](const Collectives& ops) { ops.all_reduce(op, values); });
  }
  /// Copies the root's elements in device memory to the other replicas. Throws InvalidArgument if `root` is out of
  /// range. A collective call.
  template <Reducible T, MemorySpace Where>
  void broadcast(DeviceSpan<T, Where> values, std::size_t root, const CommunicationOptions& options = {}) const {
    require_root(root);
    collective<DeviceSpan<T, Where>>("broadcast", options,
                                     [&](const Collectives& ops) { ops.broadcast(root, values); });
  }

  /// The first half of `reduce_and_apply`, for updates that need all reduced values first, for example their norm;
  /// `update_shards` is the second. Both are collective calls if there are several replicas, and divide the
  /// `values.size()` elements in the same way.
  ///
  /// Calls `use(first, reduced)` with consecutive spans of this replica's share, in the memory space of `values`; with
  /// one replica, the `values` themselves. `values` are unchanged.
  template <class T, class Op, class Use>
    requires Reducible<std::remove_const_t<T>>
  void reduce_scatter(Op op, std::span<T> values, Use&& use, const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_reduce_op<Op, std::remove_const_t<T>>()) {
      const std::span<const T> operands{values};
      if (num_replicas_in_sync() == 1)
        use(std::size_t{0}, operands);
      else
        collective("reduce_scatter", options, [&](const Collectives& ops) { ops.reduce_scatter(op, operands, use); });
    }
  }
  /// Sets `mirror[i] = update(i, mirror[i], gradients[i])` for this replica's share of the elements; every mirror then
  /// holds the results of all shares. Reads `gradients` of this share only; they may be the mirror itself. All replicas
  /// may pass the same memory as mirror. Throws ShapeMismatch if lengths differ.
  template <detail::ElementSpan Gradients, detail::ElementSpan Span, class Update>
    requires std::convertible_to<Gradients, typename detail::ReadOnly<Span>::type>
  void update_shards(Gradients gradients, Span mirror, const Update& update,
                     const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_element_update<Update, typename Span::element_type>()) {
      const typename detail::ReadOnly<Span>::type given = gradients;
      require_gradient_for_each("update_shards", given.size(), mirror.size());
      collective<Span>("update_shards", options,
                       [&](const Collectives& ops) { ops.update_shards(given, mirror, update); });
    }
  }

  /// Writes this replica's share of the reduction of device memory to the same positions of `kept`, and returns their
  /// range. `kept` must not overlap `values`, unless there is one replica.
  template <Reducible T, MemorySpace Where, class Op>
  [[nodiscard("reduce_scatter returns the range of elements that it has written")]] IndexRange reduce_scatter(
      Op op, DeviceSpan<T, Where> values, DeviceSpan<T, Where> kept, const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_reduce_op<Op, T>()) {
      require_gradient_for_each("reduce_scatter", values.size(), kept.size());
      return collective<DeviceSpan<T, Where>>(
          "reduce_scatter", options, [&](const Collectives& ops) { return ops.reduce_scatter(op, values, kept); });
    }
    return {};
  }

  /// Makes every replica's `mine` accessible to all others while `use(peers)` runs, as `peers(rank)`. Data that one
  /// replica writes must not be read or written by others. `operation`, a literal, names the call in messages. A
  /// collective call, with the same type on every replica.
  template <class T, class Use>
  void share(std::string_view operation, T& mine, Use&& use, const CommunicationOptions& options = {}) const {
    static_assert(
        detail::satisfied<ReplicasShareMemory<ReplicaContext>>,
        "share needs all replicas in one address space, as under Mirrored and CentralStorage: under a strategy "
        "of several processes, such as MultiWorker, use all_gather or a variable");
    if constexpr (ReplicasShareMemory<ReplicaContext>)
      collective("share", options,
                 [&](const Collectives& ops) { dist::share(ops.communicator(), operation, mine, use); });
  }

  /// Exchanges elements with neighbours in any graph, such as the halos of a domain that is divided among replicas.
  /// Needs <dist/context/subgroup.hpp>.
  ///
  ///   replica.neighbor_exchange({{above, first_row}, {below, last_row}}, {{below, row_below}, {above, row_above}});
  ///
  /// The n-th message from one replica to another matches the n-th receive from it there. Each list has its own order:
  /// in a ring of one or two replicas, both neighbours are the same replica, which first receives what was sent first,
  /// here upwards. Graphs need not be symmetric; replicas may send to themselves, and may have no neighbours. Sent
  /// memory must not overlap received memory, on any replica.
  ///
  /// Elements in host memory have arrived when this returns. If they are in device memory at both ends, such as parts
  /// of a buffer's component, the receiver's queue copies them: later work in either replica's queue follows the copy,
  /// and the host does not wait for devices.
  ///
  /// Throws on all replicas, naming both ends: ShapeMismatch if lengths or types differ, CollectiveMismatch if one end
  /// lacks the message. Received data is then undefined. Throws InvalidArgument if a replica is out of range, or for
  /// device memory if replicas run on the host. A collective call.
  void neighbor_exchange(const MessageList<SendTo>& sends, const MessageList<ReceiveFrom>& receives,
                         const CommunicationOptions& options = {}) const;

  /// Returns the subgroup of replicas that pass the same `color`, ranked by `key` and then by replica, such as a row or
  /// column of a grid. Needs <dist/context/subgroup.hpp>. A collective call.
  [[nodiscard]] Subgroup<ReplicaContext> split(std::size_t color, std::size_t key = 0,
                                               const CommunicationOptions& options = {}) const;

  /// Returns once every replica has called it; earlier writes are then visible to all. If the policy orders device
  /// queues, earlier work in them completes before later work. A collective call.
  void barrier(const CommunicationOptions& options = {}) const {
    collective("barrier", options, [](const Collectives& ops) {
      if constexpr (OrdersQueues<Collectives>)
        ops.order_queues();
      else
        ops.communicator().barrier();
    });
  }

  /// Calls `body(i)` for every index of `range` on this replica's device: one vectorised loop on a Cpu. The calls must
  /// be independent. Replicas share a captured array only if they are threads of one process (ReplicasShareMemory).
  template <class Body>
  DIST_ALWAYS_INLINE void for_each(IndexRange range, Body&& body) const {
    queue_.for_each(range, std::forward<Body>(body));
  }
  /// Calls `body(i)` for the indices from 0 to `count` - 1, like the overload for a range.
  template <class Body>
  DIST_ALWAYS_INLINE void for_each(std::size_t count, Body&& body) const {
    queue_.for_each(IndexRange{0, count}, std::forward<Body>(body));
  }

  /// Returns the reduction by `op` of `body(i)` over `range` on this replica's device. Not a collective: call
  /// `all_reduce` with the result.
  template <class Op, class Body>
  [[nodiscard]] DIST_ALWAYS_INLINE auto transform_reduce(Op op, IndexRange range, Body&& body) const {
    return queue_.transform_reduce(op, range, std::forward<Body>(body));
  }

  /// Returns this replica's share of `count` elements, divided among all replicas. An array of the elements exists once
  /// per process, with the shares of that process's replicas only; `all_gather` or a variable combines all.
  [[nodiscard]] IndexRange shard(std::size_t count) const noexcept {
    return shard_of(count, replica_id().index(), num_replicas_in_sync());
  }

 private:
  void require_root(std::size_t root) const {
    if (root >= num_replicas_in_sync()) detail::refuse_root(root, num_replicas_in_sync());
  }
  void require_gradient_for_each(std::string_view operation, std::size_t gradients, std::size_t elements) const {
    if (gradients != elements) detail::refuse_gradients(operation, replica_id().index(), gradients, elements);
  }
  /// True while the run lasts, in a replica's thread. Contexts are invalid otherwise.
  [[nodiscard]] bool is_in_its_run() const noexcept {
    if constexpr (CollectivesOfOne<Collectives>)
      return true;
    else
      return detail::run_here.strategy == strategy_;
  }
  /// Returns `call` of the collectives with the timeout of `options`. Records a trace event if tracing is on.
  ///
  /// If the operands are a `Span` in device memory, the event also covers this replica's queue.
  template <class Span = std::span<const std::byte>, class Call>
  auto collective([[maybe_unused]] std::string_view name, [[maybe_unused]] const CommunicationOptions& options,
                  Call&& call) const {
    if constexpr (CollectivesOfOne<Collectives>) {
      return call(collectives_);
    } else {
      const ProfilerLabel label = detail::traced(name, replica_id().index());
      const TraceSpan span{label};
      if constexpr (detail::is_on_device<Span>) {
        const ProfilerRange<Queue> queued{label, queue_};
        return detail::as_asked(collectives_, options, call);
      } else {
        return detail::as_asked(collectives_, options, call);
      }
    }
  }
  /// Returns the group of this process's replicas, whose threads share memory.
  [[nodiscard]] auto replicas_here() const noexcept { return collectives_.communicator().local(); }
  template <class Values, class Op>
  void reduce_members(Op op, Values& values, const CommunicationOptions& options) const {
    for_each_member(values, [&](auto& member) {
      using Member = std::remove_cvref_t<decltype(member)>;
      if constexpr ((Structure<Member> || Aggregate<Member>)&&!detail::NumbersValue<Member>)
        reduce_members(op, member, options);
      else
        member = all_reduce(op, std::move(member), options);
    });
  }
  template <class T, class Op>
  void reduce_in_place(Op op, std::span<T> values, const CommunicationOptions& options) const {
    if constexpr (detail::reduces_bytes<Collectives>)
      reduce_bytes(Collectives::template record<T, Op>(), std::as_writable_bytes(values), options);
    else
      collective("all_reduce", options, [&](const Collectives& ops) { ops.all_reduce(op, values); });
  }
  /// One function for all element types and reductions, precompiled for some strategies.
  template <class Record>
  void reduce_bytes(const Record& reduction, std::span<std::byte> values, const CommunicationOptions& options) const;
  template <class Value, class Op>
  void reduce_numbers_in(Op op, Value& value, const CommunicationOptions& options) const {
    const auto numbers = detail::numbers_in(value);
    constexpr bool may_change = !std::is_const_v<typename decltype(numbers)::element_type>;
    static_assert(may_change, "all_reduce of a range is in place, and these elements are constant: reduce a copy");
    if constexpr (may_change)
      if constexpr (detail::require_reduce_op_of_numbers<Op, std::remove_const_t<Value>>())
        reduce_in_place(op, numbers, options);
  }

  template <class Value>
  void broadcast_into(Value& value, std::size_t root, const CommunicationOptions& options) const {
    const auto broadcast_numbers = [&](auto numbers) {
      collective("broadcast", options, [&](const Collectives& ops) { ops.broadcast(root, numbers); });
    };
    if constexpr (Reducible<Value>) {
      broadcast_numbers(std::span<Value>{&value, 1});
    } else if constexpr (detail::owns_tensor<Value>) {
      PerReplica<Shape> shapes(num_replicas_in_sync());
      collective("broadcast", options, [&](const Collectives& ops) {
        ops.all_gather_values("broadcast of a tensor", value.shape(), std::span<Shape>{shapes.begin(), shapes.size()});
      });
      value.resize(shapes[root]);
      broadcast_numbers(value.elements());
    } else if constexpr (NumberRange<Value> || detail::NumbersValue<Value>) {
      const auto numbers = detail::numbers_in(value);
      constexpr bool may_change = !std::is_const_v<typename decltype(numbers)::element_type>;
      static_assert(may_change, "broadcast of a range is in place, and these elements are constant: give a copy");
      if constexpr (may_change) broadcast_numbers(numbers);
    } else if constexpr (detail::is_optional<Value>) {
      bool has_value = value.has_value();
      broadcast_into(has_value, root, options);
      if (!has_value) value.reset();
      if (has_value && !value) value.emplace();
      if (value) broadcast_into(*value, root, options);
    } else if constexpr (Structure<Value> || Aggregate<Value>) {
      for_each_member(value, [&](auto& member) { broadcast_into(member, root, options); });
    } else {
      constexpr bool on_device = detail::is_on_device<Value>;
      static_assert(!on_device,
                    "broadcast changes memory of a device in place: give a span of elements that may change, such as "
                    "buffer.component(replica) or view.elements()");
      static_assert(on_device,
                    "broadcast takes numbers, tensors, contiguous ranges of numbers, and structures of these");
    }
  }

  template <class T>
  static void require_equal_extents(const Collectives& collectives, std::span<const std::span<T>> tensors) {
    struct Extents {
      std::size_t count;
      std::uint64_t checksum;
    } mine{tensors.size(), 0};
    for (const std::span<T> tensor : tensors) mine.checksum = detail::combine(mine.checksum, tensor.size());
    PerReplica<Extents> all(collectives.communicator().size());
    collectives.all_gather_values("all_reduce of tensors", mine, std::span<Extents>{all.begin(), all.size()});
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank].count != all[0].count || all[rank].checksum != all[0].checksum)
        detail::refuse_tensors(rank, all[0].count, all[rank].count);
  }

  S* strategy_;
  Collectives collectives_;
  [[no_unique_address]] Queue queue_;
};

template <class S>
template <class Record>
void ReplicaContext<S>::reduce_bytes(const Record& reduction, std::span<std::byte> values,
                                     const CommunicationOptions& options) const {
  collective("all_reduce", options, [&](const Collectives& ops) { ops.all_reduce_bytes(reduction, values); });
}

namespace detail {
/// True for classes derived from ReplicaContext.
template <class C>
inline constexpr bool extends_replica_context = false;
}  // namespace detail

/// True for the context of a replica function.
template <class C>
concept InReplica = detail::is_specialization<std::remove_cvref_t<C>, ReplicaContext> ||
    detail::extends_replica_context<std::remove_cvref_t<C>>;

}  // namespace dist
