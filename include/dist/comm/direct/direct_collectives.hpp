#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/direct/reduce_directly.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/loan.hpp>
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/core/dtype.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>
#include <dist/device/device.hpp>

namespace dist {

/// Collectives of replicas on devices that reach each other's memory: each works on the operands of all through its own
/// queue, and events order the queues, so that the host waits for no device. What the replicas agree on, and operands in
/// the host's memory, go the way of SharedMemoryAllReduce. A policy names a device:
///
///   struct MyAllReduce {
///     static constexpr std::string_view name = "MyAllReduce";
///     template <class D> using State = DirectCollectives<MyDevice>::State<D>;
///     template <class C> using On = DirectCollectives<MyDevice>::On<C>;
///   };
template <Device Of>
struct DirectCollectives {
  static constexpr std::size_t most_replicas = 8;

  /// For each replica the events by which the others follow it. They are used again and again: a replica records `ready`
  /// of its next collective only after the barrier of this one, and `done` only after all have published the next one,
  /// which they do after they have waited for this one's.
  template <class D>
  struct State {
    /// Throws InvalidArgument for more than `most_replicas`.
    State(const typename D::Queues& queues, std::size_t replicas) {
      if (replicas > most_replicas)
        throw InvalidArgument(text("There are too many replicas to reduce each other's memory: ", replicas),
                              text("their operands are arguments of one kernel, which takes ", most_replicas),
                              text("Use up to ", most_replicas, " replicas in a process"));
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        ready.emplace_back(queues[replica]);
        done.emplace_back(queues[replica]);
      }
    }

    std::vector<typename D::Queue::Event> ready;
    std::vector<typename D::Queue::Event> done;
  };

  template <SharesMemory C>
  class On : public SharedMemoryAllReduce::On<C> {
    using Host = SharedMemoryAllReduce::On<C>;
    using Queue = typename Of::Queue;
    template <class T>
    using Span = typename Of::template Span<T>;

   public:
    On(C comm, const Queue& queue, State<Of>& state) : Host(comm), queue_(queue), state_(&state) {}

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      return On{this->communicator().with_timeout(timeout), queue_, *state_};
    }

    using Host::all_reduce;
    using Host::broadcast;
    using Host::reduce_and_apply;

    template <class T, ReduceOp<T> Op>
    void all_reduce(Op, Span<T> values) const {
      reduce<Op>("all_reduce", values, values, detail::TakeReduced{});
    }
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op, Span<T> gradient, Span<T> mirror, const Update& update) const {
      reduce<Op>("reduce_and_apply", gradient, mirror, update);
    }
    template <class T>
    void broadcast(std::size_t root, Span<T> values) const {
      together({.operation = "broadcast", .elements = values.size(), .dtype = dtype_name<T>, .root = root},
               values.data(), values.data(), [&] {
                 if (this->communicator().rank() != root)
                   queue_.copy(Span<T>{this->communicator().template peer<T>(root, 0), values.size()}, values);
               });
    }

   private:
    template <class Op, class T, class Update>
    void reduce(std::string_view operation, Span<T> from, Span<T> to, const Update& update) const {
      together({.operation = operation, .reduction = Op::name, .elements = to.size(), .dtype = dtype_name<T>},
               from.data(), to.data(), [&] {
                 if (this->communicator().size() <= 2)
                   put_share<Op, 2>(to, update);
                 else if (this->communicator().size() <= 4)
                   put_share<Op, 4>(to, update);
                 else
                   put_share<Op, most_replicas>(to, update);
               });
    }

    /// Puts the reduction of this replica's share into its queue.
    template <class Op, std::size_t Most, class T, class Update>
    void put_share(Span<T> to, const Update& update) const {
      using Body = detail::ReduceDirectly<T, Op, Update, Most>;
      const std::size_t size = this->communicator().size();
      const IndexRange share = shard_of(to.size(), this->communicator().rank(), size, Body::lanes);
      std::array<const T*, Most> values;
      std::array<T*, Most> mirrors;
      for (std::size_t rank = 0; rank < size; ++rank) {
        values[rank] = this->communicator().template peer<T>(rank, 0);
        mirrors[rank] = this->communicator().template peer<T>(rank, 1);
      }
      const Body body{std::span{values}.first(size), std::span{mirrors}.first(size), this->communicator().rank(),
                      share.end, update};
      queue_.for_each(Body::packs_of(share), body);
    }

    /// `put()` puts work that reads and writes the operands of all replicas into the queue, once all of them are ready.
    /// Returns when what this replica puts next follows what all put there.
    template <class T, class Put>
    void together(const CollectiveCall& call, T* from, T* to, Put&& put) const {
      const std::size_t rank = this->communicator().rank();
      queue_.record(state_->ready[rank]);
      {
        const detail::Loan loan{this->communicator()};
        this->communicator().publish(call, from, to);
        for (const auto& ready : state_->ready) queue_.wait_for(ready);
        put();
        queue_.record(state_->done[rank]);
        this->communicator().barrier();
      }
      for (const auto& done : state_->done) queue_.wait_for(done);
    }

    Queue queue_;
    State<Of>* state_;
  };
};

}  // namespace dist
