#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/direct/direct_collectives.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/even_shards.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/nccl/communicators.hpp>
#include <dist/comm/nccl/reduction.hpp>
#include <dist/comm/nccl/state.cuh>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/cuda/device.cuh>

namespace dist {

namespace nccl {

namespace detail {

/// Converts numbers to keys: see Key.
template <class T, class Op>
struct ToKeys {
  const T* numbers;
  typename Key<T, Op>::Type* keys;
  DIST_HD void operator()(std::size_t i) const { keys[i] = Key<T, Op>::of(numbers[i]); }
};
template <class T, class Op>
struct FromKeys {
  const typename Key<T, Op>::Type* keys;
  T* numbers;
  DIST_HD void operator()(std::size_t i) const { numbers[i] = Key<T, Op>::number(keys[i]); }
};

/// Returns the final value of a reduction that NCCL combined for `members` members.
template <class Op, class T>
[[nodiscard]] DIST_HD T finished(T combined, std::size_t members) {
  return static_cast<T>(Op::finish(static_cast<Accumulator<T>>(combined), members));
}
template <class Op, class T>
struct Finish {
  T* values;
  std::size_t members;
  DIST_HD void operator()(std::size_t i) const { values[i] = finished<Op>(values[i], members); }
};

/// Updates a shard by the values that NCCL combined. The shard starts at element `first`.
template <class Op, class Update>
struct FinishAndUpdate {
  Update update;
  std::size_t first;
  std::size_t members;

  template <class T>
  DIST_HD T operator()(std::size_t i, T weight, T combined) const {
    return update(first + i, weight, finished<Op>(combined, members));
  }
  template <class T>
  DIST_HD Pack<T> pack(std::size_t i, Pack<T> weights, Pack<T> combined) const {
    for (std::size_t lane = 0; lane < pack_elements<T>; ++lane)
      combined.element[lane] = finished<Op>(combined.element[lane], members);
    return updated_pack(update, first + i, weights, combined);
  }
};

}  // namespace detail

/// Collectives of GPU memory by NCCL, and of host memory by `Host`, through which replicas agree on every call before
/// NCCL is called.
template <class Host>
class Collectives : public Host {
  template <class T>
  using Span = Cuda::Span<T>;

 public:
  /// The collectives of the replica with this queue. Waits of the host end after `timeout`.
  Collectives(Host host, const Cuda::Queue& queue, const State& state, std::chrono::nanoseconds timeout)
      : Host(std::move(host)), queue_(queue), state_(&state), timeout_(timeout) {}
  /// The collectives of member `comm`, with the timeout of the queue.
  template <class C>
  Collectives(C comm, const Cuda::Queue& queue, const State& state)
      : Collectives(Host{comm}, queue, state, queue.timeout()) {}

  [[nodiscard]] Collectives with_timeout(std::chrono::nanoseconds timeout) const {
    return {Host::with_timeout(timeout), queue_, *state_, timeout};
  }

  /// True if NCCL reduces GPU memory of T by Op. Other reductions do not compile.
  template <class T, class Op>
  static constexpr bool reduces = nccl::reduces<T, Op>;

  using Host::all_gather;
  using Host::all_reduce;
  using Host::broadcast;
  using Host::reduce_and_apply;
  using Host::reduce_scatter;
  using Host::update_shards;

  template <class T, ReduceOp<T> Op>
  void all_reduce(Op, Span<T> values) const {
    if constexpr (require_reduction<T, Op>())
      together(call_of<T, Op>("all_reduce", values.size()), [&] {
        if (values.empty()) return;
        if constexpr (has_keys<T, Op>) {
          const auto keys = keys_of<Op, T>(values, 0);
          put_all_reduce<Op>(keys);
          queue_.for_each({0, values.size()}, detail::FromKeys<T, Op>{keys.data(), values.data()});
        } else {
          put_all_reduce<Op>(values);
          finish<Op>(values);
        }
      });
  }

  template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
  void reduce_and_apply(Op, Span<const T> gradient, Span<T> mirror, const Update& update) const {
    if constexpr (require_reduction<T, Op>())
      together(call_of<T, Op>("reduce_and_apply", mirror.size()), [&] { put_in_steps<Op>(gradient, mirror, update); });
  }
  template <class T, ReduceOp<T> Op>
  IndexRange reduce_scatter(Op, Span<T> values, Span<T> kept) const {
    const IndexRange shard = shard_of<T>(kept.size(), rank());
    if constexpr (require_reduction<T, Op>())
      together(call_of<T, Op>("reduce_scatter", kept.size()), [&] {
        put_reduce_scatter<Op, T>(values, kept.data() + shard.begin, 0);
        finish<Op>(kept.subspan(shard.begin, shard.size()));
      });
    return shard;
  }
  template <class T, ElementUpdate<T> Update>
  void update_shards(Span<const T> gradients, Span<T> mirror, const Update& update) const {
    together(call_of<T>("update_shards", mirror.size()), [&] {
      const IndexRange shard = shard_of<T>(mirror.size(), rank());
      put_update<Sum>(gradients.subspan(shard.begin, shard.size()), mirror, update);
      put_gather(mirror);
    });
  }
  template <class T>
  void broadcast(std::size_t root, Span<T> values) const {
    CollectiveCall call = call_of<T>("broadcast", values.size());
    call.root = root;
    together(call, [&] {
      if (!values.empty()) put_broadcast(root, values.data(), values.data(), values.size_bytes());
    });
  }
  /// Exchanges messages with neighbors. `agree()` exchanges messages in host memory and returns their common error on
  /// all replicas. Without an error, messages in GPU memory go from queue to queue; messages of a replica to itself are
  /// copied.
  template <class Sends, class Receives, class Agree>
  auto exchange_with_neighbors(const Sends& sends, const Receives& receives, Agree&& agree) const {
    const auto mismatch = agreed(agree);
    if (mismatch.is_there == 0) calling_nccl([&] { put_messages(sends, receives); });
    return mismatch;
  }
  template <class T>
  void all_gather(Span<const T> mine, std::span<const std::size_t> counts, Span<T> all) const {
    DIST_EXPECT(counts.size() == size() && mine.size() == counts[rank()]);
    CollectiveCall call = call_of<T>("all_gather", all.size());
    call.counts = ::dist::detail::hash_of_numbers(counts);
    together(call, [&] {
      put("ncclBroadcast", [&](ncclComm_t comm) {
        return in_group([&](Group& group) {
          T* to = all.data();
          for (std::size_t root = 0; root < size(); to += counts[root++])
            if (counts[root] != 0 && !group.add(ncclBroadcast(mine.data(), to, counts[root] * sizeof(T), ncclUint8,
                                                              static_cast<int>(root), comm, stream())))
              return;
        });
      });
    });
  }

 protected:
  /// True if `Op` is reduced as integer keys (`Key`), because NCCL's extrema treat NaN and zeros differently.
  template <class T, class Op>
  static constexpr bool has_keys = Floating<T>&& detail::is_extremum<Op>;

  [[nodiscard]] std::size_t rank() const noexcept { return this->communicator().rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return this->communicator().size(); }
  [[nodiscard]] const Cuda::Queue& queue() const noexcept { return queue_; }
  /// The CUDA stream of the replica's queue.
  [[nodiscard]] cudaStream_t stream() const noexcept { return queue_.stream().get(); }
  /// Divides elements like operands in host memory.
  template <class T>
  [[nodiscard]] IndexRange shard_of(std::size_t elements, std::size_t replica) const noexcept {
    return dist::shard_of(elements, replica, size(), cache_line / sizeof(T));
  }
  /// True if all shards have the same number of elements, as NCCL's reduce-scatter requires.
  template <class T>
  [[nodiscard]] bool has_equal_shards(std::size_t elements) const noexcept {
    return elements != 0 && shard_of<T>(elements, 0).size() * size() == elements;
  }

  /// Returns the call of a reduction, for comparison with the calls of other replicas.
  template <class T, class Op>
  [[nodiscard]] static CollectiveCall call_of(std::string_view operation, std::size_t elements) noexcept {
    return {.operation = operation,
            .reduction = Op::name,
            .elements = elements,
            .dtype = ::dist::detail::dtype_on_device<T>};
  }
  /// Returns the call of a collective without a reduction, for comparison with the calls of other replicas.
  template <class T>
  [[nodiscard]] static CollectiveCall call_of(std::string_view operation, std::size_t elements) noexcept {
    return {.operation = operation, .elements = elements, .dtype = ::dist::detail::dtype_on_device<T>};
  }

  /// Enqueues work once all replicas have announced the same call, because NCCL would hang or return wrong values for
  /// different calls. The failure of one replica then ends the work of all.
  template <class Put>
  void together(const CollectiveCall& call, Put&& put) const {
    agreed([&] {
      if constexpr (MeetsForCalls<Host>)
        this->meet(call);
      else
        this->communicator().exchange(call, std::span<const std::byte>{});
    });
    calling_nccl(put);
  }
  /// Calls `put()`. If it throws, cancels the NCCL work of all replicas.
  template <class Put>
  void calling_nccl(Put&& put) const {
    try {
      queue_.enter();
      put();
    } catch (...) {
      state_->ranks().cancel(std::current_exception());
      throw;
    }
  }
  /// Returns `agree()`. If it throws and the host's group is broken, cancels the NCCL work of all replicas.
  template <class Agree>
  auto agreed(Agree&& agree) const {
    try {
      return agree();
    } catch (...) {
      // Work enqueued before waits for replicas that do not arrive.
      if (this->is_broken()) state_->ranks().cancel(std::current_exception());
      throw;
    }
  }
  /// This replica's number within its process.
  [[nodiscard]] std::size_t here() const noexcept { return queue_.number(); }
  /// Enqueues NCCL work by `call(rank, stream)`. `called` is the name of the NCCL function in messages.
  template <class Call>
  void put(std::string_view called, Call&& call) const {
    state_->ranks().call(here(), called, timeout_, call);
  }
  /// Calls `calls(group)` in an NCCL group, and returns the result.
  template <class Calls>
  [[nodiscard]] static ncclResult_t in_group(Calls&& calls) {
    Group group;
    if (group.is_open()) calls(group);
    return group.end();
  }

  /// Reduces the shards into scratch memory, updates this replica's shard, and gathers all shards in place.
  template <class Op, class T, class Update>
  void put_in_steps(Span<const T> gradient, Span<T> mirror, const Update& update) const {
    const IndexRange shard = shard_of<T>(mirror.size(), rank());
    const std::size_t bytes = shard.size() * sizeof(T);
    const std::size_t keys_at = (bytes + 255) / 256 * 256;
    T* const reduced = reinterpret_cast<T*>(scratch<T, Op>(keys_at, mirror.size()));
    put_reduce_scatter<Op, T>(gradient, reduced, keys_at);
    put_update<Op>(Span<const T>{reduced, shard.size()}, mirror, update);
    put_gather(mirror);
  }

 private:
  /// Returns scratch memory of `bytes` bytes, followed by the keys of `elements` elements if the reduction needs keys.
  template <class T, class Op>
  [[nodiscard]] std::byte* scratch(std::size_t bytes, std::size_t elements) const {
    if constexpr (has_keys<T, Op>) bytes += elements * sizeof(typename Key<T, Op>::Type);
    return bytes == 0 ? nullptr : state_->scratch(here(), bytes);
  }
  template <class Op, class T>
  [[nodiscard]] auto keys_of(Span<const T> values, std::size_t at) const {
    using K = typename Key<T, Op>::Type;
    const Span<K> keys{reinterpret_cast<K*>(scratch<T, Op>(at, values.size()) + at), values.size()};
    queue_.for_each({0, values.size()}, detail::ToKeys<T, Op>{values.data(), keys.data()});
    return keys;
  }

  template <class Op, class T>
  void put_all_reduce(Span<T> values) const {
    put("ncclAllReduce", [&](ncclComm_t comm) {
      return ncclAllReduce(values.data(), values.data(), values.size(), detail::type_of<T>(),
                           detail::operation_of<Op>(), comm, stream());
    });
  }
  /// Combines this replica's shard by NCCL into `to`, possibly in place. Shards are divided as for type T, even if
  /// `values` are keys.
  template <class T, class Op, class Value>
  void put_combined(Span<const Value> values, Value* to) const {
    const ncclDataType_t type = detail::type_of<Value>();
    const ncclRedOp_t operation = detail::operation_of<Op>();
    if (values.empty()) return;
    if (has_equal_shards<T>(values.size()))
      put("ncclReduceScatter", [&](ncclComm_t comm) {
        return ncclReduceScatter(values.data(), to, values.size() / size(), type, operation, comm, stream());
      });
    else
      put("ncclReduce", [&](ncclComm_t comm) {
        return in_group([&](Group& group) {
          for (std::size_t root = 0; root < size(); ++root) {
            const IndexRange shard = shard_of<T>(values.size(), root);
            if (shard.size() != 0 && !group.add(ncclReduce(values.data() + shard.begin, to, shard.size(), type,
                                                           operation, static_cast<int>(root), comm, stream())))
              return;
          }
        });
      });
  }
  /// Combines this replica's shard into `to`, extrema by keys `at` this byte of the scratch memory.
  template <class Op, class T>
  void put_reduce_scatter(Span<const T> values, T* to, std::size_t at) const {
    if constexpr (has_keys<T, Op>) {
      if (values.empty()) return;
      const IndexRange shard = shard_of<T>(values.size(), rank());
      const auto keys = keys_of<Op, T>(values, at);
      put_combined<T, Op, typename Key<T, Op>::Type>(keys, keys.data() + shard.begin);
      queue_.for_each({0, shard.size()}, detail::FromKeys<T, Op>{keys.data() + shard.begin, to});
    } else {
      put_combined<T, Op>(values, to);
    }
  }
  template <class Op, class T>
  void finish(Span<T> values) const {
    if constexpr (std::same_as<Op, Mean>)
      queue_.for_each({0, values.size()}, detail::Finish<Op, T>{values.data(), size()});
  }
  template <class Op, class T, class Update>
  void put_update(Span<const T> reduced, Span<T> mirror, const Update& update) const {
    const IndexRange shard = shard_of<T>(mirror.size(), rank());
    const detail::FinishAndUpdate<Op, Update> change{update, shard.begin, size()};
    ::dist::detail::update_on(queue_, change, mirror.subspan(shard.begin, shard.size()), reduced);
  }
  template <class T>
  void put_gather(Span<T> mirror) const {
    if (mirror.empty()) return;
    const IndexRange mine = shard_of<T>(mirror.size(), rank());
    if (has_equal_shards<T>(mirror.size()))
      put("ncclAllGather", [&](ncclComm_t comm) {
        return ncclAllGather(mirror.data() + mine.begin, mirror.data(), mine.size() * sizeof(T), ncclUint8, comm,
                             stream());
      });
    else
      put("ncclBroadcast", [&](ncclComm_t comm) {
        return in_group([&](Group& group) {
          for (std::size_t root = 0; root < size(); ++root) {
            const IndexRange shard = shard_of<T>(mirror.size(), root);
            T* const at = mirror.data() + shard.begin;
            if (shard.size() != 0 && !group.add(ncclBroadcast(at, at, shard.size() * sizeof(T), ncclUint8,
                                                              static_cast<int>(root), comm, stream())))
              return;
          }
        });
      });
  }
  template <class Sends, class Receives>
  void put_messages(const Sends& sends, const Receives& receives) const {
    const auto for_each_of = [&](const auto& messages, bool to_itself, auto&& use) {
      for (const auto& message : messages)
        if (message.on_device != 0 && message.bytes() != 0 && (message.peer == rank()) == to_itself) use(message);
    };
    std::size_t others = 0;
    for_each_of(sends, false, [&](const auto&) { ++others; });
    for_each_of(receives, false, [&](const auto&) { ++others; });
    if (others != 0)
      put("ncclSend and ncclRecv", [&](ncclComm_t comm) {
        return in_group([&](Group& group) {
          for_each_of(sends, false, [&](const auto& send) {
            if (group.is_fine())
              group.add(ncclSend(send.data, send.bytes(), ncclUint8, static_cast<int>(send.peer), comm, stream()));
          });
          for_each_of(receives, false, [&](const auto& receive) {
            if (group.is_fine())
              group.add(
                  ncclRecv(receive.data, receive.bytes(), ncclUint8, static_cast<int>(receive.peer), comm, stream()));
          });
        });
      });
    std::vector<Span<const std::byte>> mine;
    for_each_of(sends, true, [&](const auto& send) { mine.emplace_back(send.data, send.bytes()); });
    auto next = mine.begin();
    for_each_of(receives, true, [&](const auto& receive) {
      queue_.copy(*next++, Span<std::byte>{receive.data, receive.bytes()});
    });
  }
  void put_broadcast(std::size_t root, const void* from, void* to, std::size_t bytes) const {
    put("ncclBroadcast", [&](ncclComm_t comm) {
      return ncclBroadcast(from, to, bytes, ncclUint8, static_cast<int>(root), comm, stream());
    });
  }

  Cuda::Queue queue_;
  const State* state_;
  std::chrono::nanoseconds timeout_;
};

}  // namespace nccl

namespace detail {
template <class Host>
struct NeighborExchange<nccl::Collectives<Host>> {
  static constexpr bool takes_memory_of_devices = true;

  template <class Sends, class Receives, class Mismatch>
  [[nodiscard]] static Mismatch run(const nccl::Collectives<Host>& ops, const Sends& sends, const Receives& receives,
                                    const Mismatch& found) {
    return ops.exchange_with_neighbors(sends, receives, [&] {
      return NeighborExchange<Host>::run(static_cast<const Host&>(ops), sends, receives, found);
    });
  }
};
}  // namespace detail

/// Reduction of GPU memory by NCCL, one replica per GPU (spec H05), in a process under Mirrored, across processes under
/// MultiWorker. Agreement on calls, and operands in host memory, use ThreadAllReduce, and RingAllReduce between
/// workers. NCCL is called once all replicas have announced the same call. NCCL adds in its own order, and rounds
/// 16-bit numbers after each addition. A mean is the sum, divided.
struct NcclAllReduce {
  static constexpr std::string_view name = "NcclAllReduce";
  static constexpr bool sums_in_rank_order = false;
  using DefaultDevice = Cuda;

  /// True if the policy supports communicator `C`.
  template <class C>
  static constexpr bool fits = ThreadAllReduce::fits<C>;

  template <class D>
  using State = nccl::State;
  template <class C>
  using On = nccl::Collectives<ThreadAllReduce::On<C>>;

  using StateOfWorkers = nccl::StateOfWorkers;
  template <class Host>
  using OfWorkers = nccl::Collectives<EvenShards<Host>>;
};

}  // namespace dist
