#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/direct/reduce_directly.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>
#include <dist/device/device.hpp>

namespace dist {

namespace detail {
/// Name of T in device memory, such as "f32 on a device". Replicas disagree if one passes host memory and another
/// device memory.
template <class T>
inline constexpr auto dtype_on_device_letters = [] {
  constexpr std::string_view where = " on a device";
  std::array<char, dtype_name<T>.size() + where.size()> letters{};
  std::copy(where.begin(), where.end(), std::copy(dtype_name<T>.begin(), dtype_name<T>.end(), letters.begin()));
  return letters;
}();
template <class T>
inline constexpr std::string_view dtype_on_device{dtype_on_device_letters<T>.data(), dtype_on_device_letters<T>.size()};

/// Divides the elements equally between the replicas, like operands in host memory.
struct EqualShares {
  [[nodiscard]] static constexpr IndexRange share_of(std::size_t elements, std::size_t rank, std::size_t replicas,
                                                     std::size_t granule) noexcept {
    return shard_of(elements, rank, replicas, granule);
  }
};
/// Assigns all elements to replica 0.
struct AllOnFirst {
  [[nodiscard]] static constexpr IndexRange share_of(std::size_t elements, std::size_t rank, std::size_t,
                                                     std::size_t) noexcept {
    return {0, rank == 0 ? elements : 0};
  }
};
}  // namespace detail

/// Collectives of replicas on devices that access each other's memory. Each replica works on all operands through its
/// own queue; events order the queues, so the host never waits for devices. Each replica reduces its share of the
/// elements (`Shares`) and writes it for all. Agreement on calls, and operands in host memory, use `OnHost`, a policy
/// for shared memory with the same shares. A policy names a device:
///
///     struct MyAllReduce {
///       static constexpr std::string_view name = "MyAllReduce";
///       template <class D> using State = DirectCollectives<MyDevice>::State<D>;
///       template <class C> using On = DirectCollectives<MyDevice>::On<C>;
///     };
template <Device Of, class OnHost = ThreadAllReduce, class Shares = detail::EqualShares>
struct DirectCollectives {
  /// Maximum number of replicas, because a kernel takes the addresses of all operands as arguments.
  static constexpr std::size_t most_replicas = detail::most_direct_replicas;

  /// Events of each replica for its peers, reused in every collective: `ready` is recorded after the barrier of the
  /// previous one, `done` after all have published the current one, that is, after waiting for the previous `done`.
  template <class D>
  struct State {
    /// Throws InvalidArgument for more than `most_replicas`, or if devices cannot access each other's memory.
    State(const typename D::Queues& queues, std::size_t replicas) {
      if (replicas > most_replicas)
        throw InvalidArgument(
            concat("There are too many replicas to reduce each other's memory: ", replicas),
            concat("their operands are the arguments of one kernel, which takes at most ", most_replicas),
            concat("Use up to ", most_replicas, " replicas in a process"));
      if constexpr (MayNotReach<D>) D::require_reach(queues, replicas);
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        ready.emplace_back(queues[replica]);
        done.emplace_back(queues[replica]);
      }
    }

    std::vector<typename D::Queue::Event> ready;  ///< per replica: its operands are ready for peers
    std::vector<typename D::Queue::Event> done;   ///< per replica: its work on the peers' operands is done
  };

  /// The collectives of one replica, a member of `C` with its own queue.
  template <SharesMemory C>
  class On : public OnHost::template On<C> {
   protected:
    /// Agrees on calls, and reduces operands in host memory.
    using Host = typename OnHost::template On<C>;
    /// A replica's queue.
    using Queue = typename Of::Queue;
    /// Elements in device memory.
    template <class T>
    using Span = typename Of::template Span<T>;

   public:
    On(Host host, const Queue& queue, State<Of>& state) : Host(std::move(host)), queue_(queue), state_(&state) {}
    On(C comm, const Queue& queue, State<Of>& state) : On(Host{comm}, queue, state) {}

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      return On{Host::with_timeout(timeout), queue_, *state_};
    }

    using Host::all_reduce;
    using Host::broadcast;
    using Host::reduce_and_apply;
    using Host::reduce_scatter;
    using Host::update_shards;

    template <class T, ReduceOp<T> Op>
    void all_reduce(Op, Span<T> values) const {
      reduce<Op, T>("all_reduce", values, values, detail::TakeReduced{});
    }
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op, Span<const T> gradient, Span<T> mirror, const Update& update) const {
      reduce<Op, T>("reduce_and_apply", gradient, mirror, update);
    }
    /// Reduces this replica's share of the values into the same positions of `kept`, which is different memory. Returns
    /// the share.
    template <class T, ReduceOp<T> Op>
    IndexRange reduce_scatter(Op, Span<T> values, Span<T> kept) const {
      together({.operation = "reduce_scatter",
                .reduction = Op::name,
                .elements = kept.size(),
                .dtype = detail::dtype_on_device<T>},
               {.read = values.data()}, [&] {
                 const auto all = operands<const T>();
                 T* const mine = kept.data();
                 put_share<Op, T>(kept.size(), std::span{all}.first(size()), {&mine, 1}, 0, detail::TakeReduced{});
               });
      return share_of<T>(kept.size());
    }
    /// Updates this replica's share of all mirrors by its gradients.
    template <class T, ElementUpdate<T> Update>
    void update_shards(Span<const T> gradients, Span<T> mirror, const Update& update) const {
      together({.operation = "update_shards", .elements = mirror.size(), .dtype = detail::dtype_on_device<T>},
               {.write = mirror.data()}, [&] {
                 const auto all = operands<T>();
                 const T* const mine = gradients.data();
                 const std::size_t copies = distinct(all);
                 put_share<Sum, T>(mirror.size(), {&mine, 1}, std::span{all}.first(copies), copies == 1 ? 0 : rank(),
                                   update);
               });
    }
    template <class T>
    void broadcast(std::size_t root, Span<T> values) const {
      together({.operation = "broadcast", .elements = values.size(), .dtype = detail::dtype_on_device<T>, .root = root},
               {.read = values.data()}, [&] {
                 if (rank() != root)
                   queue_.copy(Span<const T>{this->communicator().template peer<T>(root), values.size()}, values);
               });
    }

    /// Orders the queues: work of all replicas before this call is done before their work after it.
    void order_queues() const {
      together({.operation = "barrier"}, {}, [] {});
    }

    /// Access for copies between neighbors: see CopiesBetweenDevices.
    [[nodiscard]] const Queue& queue() const noexcept { return queue_; }
    void record_ready() const { queue_.record(state_->ready[rank()]); }
    void wait_for_ready(std::size_t replica) const { queue_.wait_for(state_->ready[replica]); }
    void record_done() const { queue_.record(state_->done[rank()]); }
    void wait_for_done(std::size_t replica) const { queue_.wait_for(state_->done[replica]); }

   protected:
    [[nodiscard]] std::size_t rank() const noexcept { return this->communicator().rank(); }
    [[nodiscard]] std::size_t size() const noexcept { return this->communicator().size(); }

    /// Returns the memory that each replica lends: to read if T is const, else to write.
    template <class T>
    [[nodiscard]] std::array<T*, most_replicas> operands() const {
      const C& comm = this->communicator();
      std::array<T*, most_replicas> all{};
      for (std::size_t each = 0; each < size(); ++each) {
        if constexpr (std::is_const_v<T>)
          all[each] = comm.template peer<T>(each);
        else
          all[each] = comm.template peer_to_write<T>(each);
      }
      return all;
    }
    /// Returns the number of operands to write: 1 if all replicas lend the same memory, else one per replica.
    template <class T>
    [[nodiscard]] std::size_t distinct(const std::array<T*, most_replicas>& operands) const {
      return std::all_of(operands.begin(), operands.begin() + size(), [&](T* each) { return each == operands[0]; })
                 ? 1
                 : size();
    }
    /// Returns the elements that this replica reduces.
    template <class T>
    [[nodiscard]] IndexRange share_of(std::size_t elements) const noexcept {
      return Shares::share_of(elements, rank(), size(), cache_line / sizeof(T));
    }

    /// Calls `put()`, which enqueues work on all operands, once all are ready. Work that this replica enqueues next
    /// follows the work of all replicas.
    template <class Put>
    void together(const CollectiveCall& call, const Operand& lent, Put&& put) const {
      record_ready();
      {
        const detail::Borrowed loan{this->communicator()};
        this->communicator().publish(call, lent);
        for (std::size_t each = 0; each < size(); ++each) wait_for_ready(each);
        put();
        record_done();
        this->communicator().barrier();
      }
      for (std::size_t each = 0; each < size(); ++each) wait_for_done(each);
    }

   private:
    template <class Op, class T, class Update>
    void reduce(std::string_view operation, Span<const T> from, Span<T> to, const Update& update) const {
      together(
          {.operation = operation, .reduction = Op::name, .elements = to.size(), .dtype = detail::dtype_on_device<T>},
          {.read = from.data(), .write = to.data()}, [&] {
            const auto values = operands<const T>();
            const auto mirrors = operands<T>();
            const std::size_t written = distinct(mirrors);
            detail::put_direct_reduction<Op, T>(queue_, share_of<T>(to.size()), std::span{values}.first(size()),
                                                std::span{mirrors}.first(written), written == 1 ? 0 : rank(), update);
          });
    }

    /// Enqueues the reduction of this replica's share, with fewer values or mirrors than replicas.
    template <class Op, class T, class Update>
    void put_share(std::size_t elements, std::span<const T* const> values, std::span<T* const> mirrors, std::size_t own,
                   const Update& update) const {
      using Body = detail::ReduceDirectly<T, Op, Update, most_replicas>;
      const IndexRange share = share_of<T>(elements);
      queue_.for_each(detail::packs_of<T>(share), Body{values, mirrors, own, share.end, update});
    }

    Queue queue_;
    State<Of>* state_;
  };
};

namespace detail {
/// DirectCollectives as a strategy's policy on any device, used by CentralStorage.
template <class DeviceType>
struct DirectOps {
  static constexpr std::string_view name = "DirectAllReduce";
  template <class D>
  using State = typename DirectCollectives<DeviceType>::template State<D>;
  template <class C>
  using On = typename DirectCollectives<DeviceType>::template On<C>;
};
}  // namespace detail

}  // namespace dist
