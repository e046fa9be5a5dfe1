#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

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
#include <dist/context/run_here.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/concatenate.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/trace.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/device/profiler_range.hpp>

namespace dist {

// In headers of their own, which only programs that use them pay for.
template <class Byte>
struct NeighborMessage;
using SendTo = NeighborMessage<const std::byte>;
using ReceiveFrom = NeighborMessage<std::byte>;
template <class Message>
class MessageList;
template <class Replica>
class Subgroup;

/// All replicas of strategy `S`, or of the strategy of replica context `S`, have one address space: they are threads of
/// one process, or there is one. What a replica function captures by reference is then one object for all of them, while
/// under a strategy of several processes, such as MultiWorker, every process has its own. Code that relies on it asks for
/// it: `template <dist::ReplicasShareMemory Strategy>`.
template <class S>
concept ReplicasShareMemory = requires(const typename std::remove_cvref_t<S>::Collectives& collectives) {
  requires SharesMemory<std::remove_cvref_t<decltype(collectives.communicator())>> ||
      GroupOfOne<std::remove_cvref_t<decltype(collectives.communicator())>>;
};

namespace detail {

/// A variable or a buffer, of which every replica has a copy.
template <class Variable, class Context>
concept HasComponentFor = requires(const Variable& variable, const Context& replica) {
  variable.component(replica);
};

/// Elements in a replica's memory, as they are read only.
template <class Span>
struct ReadOnly {};
template <class T>
struct ReadOnly<std::span<T>> : std::type_identity<std::span<const T>> {};
template <class T, MemorySpace Where>
struct ReadOnly<DeviceSpan<T, Where>> : std::type_identity<DeviceSpan<const T, Where>> {};
/// A std::span, or the same of a device.
template <class S>
concept ElementSpan = requires {
  typename ReadOnly<S>::type;
};

/// Refuses, in a sentence, what `merge_call` cannot call, and says whether it can.
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

/// Where a replica function runs: `run` hands one to each replica (spec B04, E). It says which replica this is, and
/// does what replicas do together. Collective calls must be made by every replica in the same order (spec E12).
///
/// All calls resolve at compile time. Under a strategy with one replica `num_replicas_in_sync()` is a constant and the
/// collectives are identities.
template <class S>
class ReplicaContext {
 public:
  using Strategy = S;
  using Collectives = typename S::Collectives;
  using Device = typename S::Device;
  using Queue = typename Device::Queue;

  ReplicaContext(S& strategy, Collectives collectives, Queue queue)
      : strategy_(&strategy), collectives_(collectives), queue_(queue) {}

  [[nodiscard]] S& strategy() const noexcept {
    DIST_EXPECT_INNER(is_in_its_run());
    return *strategy_;
  }
  [[nodiscard]] const Collectives& collectives() const noexcept { return collectives_; }
  /// The stream of work on this replica's device: where the device is not the host, what `for_each` and others put there
  /// may be done later.
  [[nodiscard]] const Queue& queue() const noexcept { return queue_; }

  /// 0 to `num_replicas_in_sync() - 1`, over all processes (spec E01).
  [[nodiscard]] ReplicaId replica_id() const noexcept { return ReplicaId{collectives_.communicator().rank()}; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return collectives_.communicator().size(); }
  /// This replica's number among the replicas of its process: the index of its state in a per-process array.
  [[nodiscard]] std::size_t local_index() const noexcept { return replicas_here().rank(); }

  /// The reduction of all replicas' values, the same on every replica (spec E03). A collective call, as are all of
  /// this name. What has a name and is a contiguous range of numbers (std::span, std::vector, a matrix of Eigen) is
  /// reduced in place; everything else is a value, whose reduction is returned: numbers, tensors, structures
  /// (std::array among them), plain structs, and ranges that are temporary.
  ///
  /// `options.timeout` is how long this call waits for other replicas; where it is left out, as long as the strategy's
  /// calls do (spec H13).
  template <Reducible T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] T all_reduce(Op op, T value, const CommunicationOptions& options = {}) const {
    all_reduce(op, std::span<T>{&value, 1}, options);
    return value;
  }
  /// The same element by element, in place. Throws CollectiveMismatch when replicas give different counts.
  template <Reducible T, class Op>
  void all_reduce(Op op, std::span<T> values, const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_reduce_op<Op, T>())
      collective("all_reduce", options, [&](const Collectives& ops) { ops.all_reduce(op, values); });
  }
  /// The same of any contiguous range of numbers, of complex numbers (sum and mean), or of values that consist of
  /// numbers of one type, such as points. Throws InvalidArgument for a view with gaps between its elements.
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

  /// The same of a tensor. Throws ShapeMismatch when replicas give different shapes (spec H09).
  template <Reducible T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] Tensor<T> all_reduce(Op op, Tensor<T> values,
                                                              const CommunicationOptions& options = {}) const {
    PerReplica<Shape> shapes(num_replicas_in_sync());
    collective("all_reduce", options, [&](const Collectives& ops) {
      ops.all_gather_values("all_reduce of a tensor", values.shape(), std::span<Shape>{shapes.begin(), shapes.size()});
    });
    require_equal_shapes(shapes);
    all_reduce(op, values.elements(), options);
    return values;
  }
  /// The same of a complex number, and of every member of a tuple, pair, array, optional or plain struct, and inside.
  /// Throws ShapeMismatch when an optional has a value on some replicas only, CollectiveMismatch for other structures.
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
  /// The slices of all replicas, one after another in replica order; a mean divides their values by the number of
  /// replicas (spec H10). Replicas may give different numbers of rows. Throws ShapeMismatch for slices of arrays of
  /// different shapes.
  template <class T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] IndexedSlices<T> all_reduce(Op op, const IndexedSlicesView<T>& slices,
                                                                     const CommunicationOptions& options = {}) const {
    return collective("all_reduce", options,
                      [&](const Collectives& ops) { return all_reduce_slices(ops, op, slices); });
  }
  template <class T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] IndexedSlices<T> all_reduce(Op op, const IndexedSlices<T>& slices,
                                                                     const CommunicationOptions& options = {}) const {
    return all_reduce(op, slices.view(), options);
  }

  /// The same of several tensors at once, in place, with the same extents on every replica: packed together as
  /// `options.bytes_per_pack` says, or else as the strategy's options do, and with the deadline of
  /// `options` (spec E03, H09, H12, H13). Tensors that follow each other in memory are not copied.
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

  /// The reduction of a variable's copies, this replica's among them, whatever the variable's own aggregation (spec
  /// E04, G25).
  template <class Op, detail::HasComponentFor<ReplicaContext> Variable>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] Tensor<typename Variable::Element> all_reduce(
      Op op, const Variable& variable, const CommunicationOptions& options = {}) const {
    Tensor<typename Variable::Element> values{variable.shape()};
    const auto queue = variable.queue(*this);
    queue.copy(variable.component(*this), values.elements());
    queue.wait();
    return all_reduce(op, std::move(values), options);
  }

  /// The values of all replicas, concatenated along `axis` in replica order, the same on every replica (spec E06).
  /// They may differ in extent along that axis only: throws ShapeMismatch, also for scalars, and InvalidArgument for an
  /// axis that they do not have. A collective call.
  template <class T>
    requires Reducible<std::remove_const_t<T>>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] Tensor<std::remove_const_t<T>> all_gather(
      TensorView<T> mine, int axis, const CommunicationOptions& options = {}) const {
    return collective("all_gather", options,
                      [&](const Collectives& ops) { return all_gather_tensors(ops, "replica", mine, axis); });
  }
  template <Reducible T>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] Tensor<T> all_gather(const Tensor<T>& mine, int axis,
                                                              const CommunicationOptions& options = {}) const {
    return all_gather(mine.view(), axis, options);
  }
  /// The same of a range, which has one axis, or two where an element consists of several numbers.
  template <NumberRange Range>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] auto all_gather(const Range& mine, int axis,
                                                         const CommunicationOptions& options = {}) const {
    return all_gather(detail::view_of_numbers(mine), axis, options);
  }

  /// What they do not take, for sentences.
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
  template <class Value>
    requires(Reducible<Value> || !detail::CollectiveOperand<Value>)
  [[nodiscard]] auto all_gather(const Value&, int, const CommunicationOptions& = {}) const {
    detail::require_host_access<detail::MemorySpaceOf<Value>>();
    static_assert(!Reducible<Value>, "all_gather takes a tensor; a number has no axis: give a tensor of shape [1]");
    static_assert(detail::satisfied < Reducible<Value> || detail::is_on_device < Value >>,
                  "all_gather takes tensors and contiguous ranges of numbers: give a dist::Tensor or a std::span");
    return detail::refused<Tensor<float>>();
  }

  /// The value of replica `root`, on every replica. As in `all_reduce`, a contiguous range of numbers that has a name is
  /// overwritten in place, with as many elements on every replica; everything else is returned: a tensor has the root's
  /// shape, an optional a value where the root's has one. A collective call, of which every replica names the same root.
  /// Throws InvalidArgument for a root that there is not.
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

  /// Brings all replicas of this process together and calls `fn(scope, args...)` once, in the cross-replica context, on
  /// the thread of the first; each argument is the PerReplica of what the replicas gave (spec E08). Where there is one
  /// replica without threads, the arguments are plain (spec E09).
  ///
  /// Each replica gets what `fn` returns: its own value of a PerReplica, a copy of anything else. A collective call;
  /// what `fn` throws ends the run.
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
      // The types are a part of the calls: replicas that give other types do not agree.
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
          queue_.enter();  // the function may have used those of other replicas
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
        comm.barrier();  // until then replica 0 keeps the result
        return own;
      }
    }
  }

  /// This replica's value of a PerReplica of `run` or of a merge function, also inside structures (spec F06).
  template <class Value>
  [[nodiscard]] decltype(auto) select(Value& value) const {
    return select_replica(local_index(), value);
  }

  /// Reduces `gradient` over the replicas and applies it to `mirror` in one pass over memory, each replica doing a
  /// share: `mirror[i] = update(i, mirror[i], reduced[i])`, for each element on one replica and in any order (see
  /// ElementUpdate). Every replica's `mirror` must hold the same values before, and holds the same bits after. Leaves
  /// `gradient` as it was. Throws ShapeMismatch when `gradient` and `mirror` differ in length. A collective call.
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

  /// `all_reduce` and `broadcast` of elements in memory of the replicas' devices. As in `reduce_and_apply` of such elements,
  /// the policy's work is put into the replicas' queues: what follows there sees it done. Collectives of the host's memory
  /// are done when they return, whatever the device.
  template <Reducible T, MemorySpace Where, class Op>
  void all_reduce(Op op, DeviceSpan<T, Where> values, const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_reduce_op<Op, T>())
      collective<DeviceSpan<T, Where>>("all_reduce", options,
                                       [&](const Collectives& ops) { ops.all_reduce(op, values); });
  }
  template <Reducible T, MemorySpace Where>
  void broadcast(DeviceSpan<T, Where> values, std::size_t root, const CommunicationOptions& options = {}) const {
    require_root(root);
    collective<DeviceSpan<T, Where>>("broadcast", options,
                                     [&](const Collectives& ops) { ops.broadcast(root, values); });
  }

  /// The two halves of `reduce_and_apply`, for an update that must know something of all reduced values first, such as
  /// their norm. A collective call each, where there is more than one replica, with the same division of
  /// `values.size()` elements among the replicas.
  ///
  /// Calls `use(first, reduced)` with consecutive spans of this replica's share of the reduction, which lie where the
  /// values do; where there is one replica, these are its `values` themselves. Leaves `values` as they were.
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
  /// `mirror[i] = update(i, mirror[i], gradients[i])` for this replica's share of the elements; every replica's mirror
  /// then holds what the owners made of their shares. Reads `gradients` of this share only; they may be the mirror
  /// itself. All replicas may give the same memory as mirror. Throws ShapeMismatch when the two differ in length.
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

  /// The first half of elements in memory of the replicas' devices puts this replica's share of the
  /// reduction into the same places of `kept`, which are not the values themselves unless there is one replica, and
  /// returns which places these are.
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

  /// Lets the replicas see each other's `mine`, whatever that is, while `use(peers)` runs on any of them: `peers(rank)`
  /// is that of replica `rank`. What one writes there no other may read or write. `operation`, a literal, is how
  /// messages call it. A collective call, with the same type on every replica.
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

  /// Lets neighbours exchange elements, in any graph: the halo of a domain that the replicas divide. Needs
  /// <dist/context/subgroup.hpp>.
  ///
  ///   replica.neighbor_exchange({{above, first_row}, {below, last_row}}, {{below, row_below}, {above, row_above}});
  ///
  /// What this replica sends to another one as its n-th message for that one arrives where the other one receives its n-th
  /// message from this one. The two lists are in orders of their own: in a ring of two, or of one, both neighbours are the
  /// same replica, and what it receives first is what it sent first, here upwards. Nothing has to be symmetric, replicas may
  /// send to themselves, and have no neighbours. What is sent must not overlap what is written, on any replica.
  ///
  /// Elements lie in memory of the host, and have arrived when this returns; or at both ends in memory of the replicas'
  /// devices, such as parts of a buffer's component: then the receiver's queue copies them, what either replica puts into
  /// its queue afterwards follows the copy, and the host waits for no device.
  ///
  /// Throws on all replicas, naming both ends of a message, ShapeMismatch where one end has more elements than the other or
  /// elements of another type, CollectiveMismatch where one end has no such message; what arrived is then not to be used.
  /// Throws InvalidArgument for a replica that there is not, and for memory of a device where replicas work on the host. A
  /// collective call.
  void neighbor_exchange(const MessageList<SendTo>& sends, const MessageList<ReceiveFrom>& receives,
                         const CommunicationOptions& options = {}) const;

  /// The subgroup of the replicas that give the same `color`, ranked by `key` and then by replica: the row or the column of
  /// a grid of replicas. Needs <dist/context/subgroup.hpp>. A collective call.
  [[nodiscard]] Subgroup<ReplicaContext> split(std::size_t color, std::size_t key = 0,
                                               const CommunicationOptions& options = {}) const;

  /// Returns once every replica has called it: what they wrote before is visible to all afterwards. Where the policy
  /// orders queues of devices, what they put there before is done before what they put there next. A collective call.
  void barrier(const CommunicationOptions& options = {}) const {
    collective("barrier", options, [](const Collectives& ops) {
      if constexpr (OrdersQueues<Collectives>)
        ops.order_queues();
      else
        ops.communicator().barrier();
    });
  }

  /// Calls `body(i)` for every index of `range` on this replica's device: one vectorised loop on a Cpu. The calls must
  /// not depend on each other. Replicas that write parts of one captured array see each other's parts only where they
  /// are threads of one process (ReplicasShareMemory).
  template <class Body>
  DIST_ALWAYS_INLINE void for_each(IndexRange range, Body&& body) const {
    queue_.for_each(range, std::forward<Body>(body));
  }
  template <class Body>
  DIST_ALWAYS_INLINE void for_each(std::size_t count, Body&& body) const {
    queue_.for_each(IndexRange{0, count}, std::forward<Body>(body));
  }

  /// `op` over `body(i)` for every index of `range`, on this replica's device. Not a collective: `all_reduce` the
  /// result for the value over all replicas.
  template <class Op, class Body>
  [[nodiscard]] DIST_ALWAYS_INLINE auto transform_reduce(Op op, IndexRange range, Body&& body) const {
    return queue_.transform_reduce(op, range, std::forward<Body>(body));
  }

  /// This replica's part of `count` things that the replicas of all processes share out among them. An array of the
  /// things exists once in each process, where only the parts of that process's replicas are written: `all_gather` or a
  /// variable brings the parts of all together.
  [[nodiscard]] IndexRange shard(std::size_t count) const noexcept {
    return shard_of(count, replica_id().index(), num_replicas_in_sync());
  }

 private:
  void require_root(std::size_t root) const {
    if (root >= num_replicas_in_sync())
      throw InvalidArgument("There is no replica to broadcast from",
                            concat("root ", root, " of ", num_replicas_in_sync(), " replicas"),
                            "Give a root from 0 to num_replicas_in_sync() - 1");
  }
  void require_gradient_for_each(std::string_view operation, std::size_t gradients, std::size_t elements) const {
    if (gradients != elements)
      throw ShapeMismatch(
          concat("The gradient of replica ", replica_id().index(), " does not fit what it is applied to"),
          concat(gradients, " elements for ", elements),
          concat("Give ", operation, " one gradient element for each element to change"));
  }
  /// A context that was kept is not to be used after its run, nor in a thread that is no replica.
  [[nodiscard]] bool is_in_its_run() const noexcept {
    if constexpr (CollectivesOfOne<Collectives>)
      return true;
    else
      return detail::run_here.strategy == strategy_;
  }
  /// What `call` returns for the collectives, which wait as long as `options` say; an event in the trace, if there is
  /// one.
  ///
  /// Where the operands are a `Span` in memory of the devices, it is an event of this replica's queue, too.
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
  /// The group of the replicas of this process, whose threads see each other's memory.
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
  static void require_equal_shapes(const PerReplica<Shape>& shapes) {
    for (std::size_t rank = 1; rank < shapes.size(); ++rank)
      if (shapes[rank] != shapes[0])
        throw ShapeMismatch(concat("The tensors of replicas 0 and ", rank, " cannot be reduced"),
                            concat("shapes ", to_string(shapes[0]), " and ", to_string(shapes[rank])),
                            "Give tensors of one shape on every replica");
  }
  template <class Value, class Op>
  void reduce_numbers_in(Op op, Value& value, const CommunicationOptions& options) const {
    const auto numbers = detail::numbers_in(value);
    constexpr bool may_change = !std::is_const_v<typename decltype(numbers)::element_type>;
    static_assert(may_change, "all_reduce of a range is in place, and these elements are constant: reduce a copy");
    if constexpr (may_change)
      if constexpr (detail::require_reduce_op_of_numbers<Op, std::remove_const_t<Value>>())
        collective("all_reduce", options, [&](const Collectives& ops) { ops.all_reduce(op, numbers); });
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
        throw ShapeMismatch(concat("The tensors of replicas 0 and ", rank, " cannot be reduced"),
                            concat(all[0].count, " and ", all[rank].count, " tensors, of which some differ in extent"),
                            "Give tensors of the same extents, in the same order, on every replica");
  }

  S* strategy_;
  Collectives collectives_;
  [[no_unique_address]] Queue queue_;
};

namespace detail {
/// A class that is derived from a ReplicaContext.
template <class C>
inline constexpr bool extends_replica_context = false;
}  // namespace detail

/// The context of a replica function.
template <class C>
concept InReplica = detail::is_specialization<std::remove_cvref_t<C>, ReplicaContext> ||
    detail::extends_replica_context<std::remove_cvref_t<C>>;

}  // namespace dist
