// A policy for GuardedDevice: replicas work on each other's memory through their queues, ordered by events. The host's
// memory is reduced as by SharedMemoryAllReduce.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/loan.hpp>
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/core/dtype.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <support/guarded_device.hpp>

namespace testing {

struct GuardedAllReduce {
  static constexpr std::string_view name = "GuardedAllReduce";

  /// The events by which replicas follow each other.
  template <class D>
  struct State {
    State(const typename D::Queues& queues, std::size_t replicas) {
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        ready.emplace_back(queues[replica]);
        done.emplace_back(queues[replica]);
      }
    }
    std::vector<typename D::Queue::Event> ready;
    std::vector<typename D::Queue::Event> done;
  };

  template <class C>
  class On : public dist::SharedMemoryAllReduce::On<C> {
    using Host = dist::SharedMemoryAllReduce::On<C>;
    using Queue = GuardedDevice::Queue;
    template <class T>
    using Span = GuardedDevice::Span<T>;

   public:
    On(C comm, const Queue& queue, State<GuardedDevice>& state) : Host(comm), queue_(queue), state_(&state) {}

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      return On{this->communicator().with_timeout(timeout), queue_, *state_};
    }

    using Host::all_reduce;
    using Host::broadcast;
    using Host::reduce_and_apply;

    template <class T, class Op>
    void all_reduce(Op op, Span<T> values) const {
      reduce(op, "all_reduce", values, values, [](std::size_t, T, T reduced) { return reduced; });
    }
    template <class T, class Op, class Update>
    void reduce_and_apply(Op op, Span<T> gradient, Span<T> mirror, const Update& update) const {
      reduce(op, "reduce_and_apply", gradient, mirror, update);
    }
    template <class T>
    void broadcast(std::size_t root, Span<T> values) const {
      together({.operation = "broadcast", .elements = values.size(), .dtype = dist::dtype_name<T>, .root = root},
               values.data(), values.data(), [&] {
                 if (this->communicator().rank() != root)
                   queue_.copy(Span<T>{this->communicator().template peer<T>(root, 0), values.size()}, values);
               });
    }

   private:
    template <class T, class Op, class Update>
    void reduce(Op op, std::string_view operation, Span<T> from, Span<T> to, const Update& update) const {
      together({.operation = operation, .reduction = Op::name, .elements = to.size(), .dtype = dist::dtype_name<T>},
               from.data(), to.data(), [&] {
                 const std::size_t size = this->communicator().size();
                 std::vector<const T*> values;
                 std::vector<T*> mirrors;
                 for (std::size_t rank = 0; rank < size; ++rank) {
                   values.push_back(this->communicator().template peer<T>(rank, 0));
                   mirrors.push_back(this->communicator().template peer<T>(rank, 1));
                 }
                 queue_.for_each(dist::shard_of(to.size(), this->communicator().rank(), size),
                                 [=, mine = to.data()](std::size_t i) {
                                   using Wide = dist::Accumulator<T>;
                                   Wide reduced = values[0][i];
                                   for (std::size_t rank = 1; rank < size; ++rank)
                                     reduced = op(reduced, Wide{values[rank][i]});
                                   const T updated = update(i, mine[i], static_cast<T>(Op::finish(reduced, size)));
                                   for (T* const mirror : mirrors) mirror[i] = updated;
                                 });
               });
    }

    /// `put()` puts work that reads and writes the operands of all replicas into the queue.
    template <class T, class Put>
    void together(const dist::CollectiveCall& call, T* from, T* to, Put&& put) const {
      const std::size_t rank = this->communicator().rank();
      queue_.record(state_->ready[rank]);
      {
        const dist::detail::Loan loan{this->communicator()};
        this->communicator().publish(call, from, to);
        for (const auto& ready : state_->ready) queue_.wait_for(ready);
        put();
        queue_.record(state_->done[rank]);
        this->communicator().barrier();
      }
      for (const auto& done : state_->done) queue_.wait_for(done);
    }

    Queue queue_;
    State<GuardedDevice>* state_;
  };
};

}  // namespace testing
