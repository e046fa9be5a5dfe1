#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/direct/direct_collectives.hpp>
#include <dist/comm/direct/reduce_directly.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory/hierarchical_copy_all_reduce.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/device.hpp>

namespace dist {

namespace detail {

/// Combines a group's values of one element in rank order, without rounding.
template <class T, class Op, std::size_t Most>
struct CombineGroup {
  const T* values[Most];
  std::size_t count;
  Accumulator<T>* to;

  DIST_HD void operator()(std::size_t i) const {
    auto combined = static_cast<Accumulator<T>>(values[0][i]);
    for (std::size_t r = 1; r < Most; ++r)
      if (r < count) combined = Op{}(combined, static_cast<Accumulator<T>>(values[r][i]));
    to[i] = combined;
  }
};

/// Combines and rounds both groups' values of one element, updates `mine` by it, and writes the result to every mirror.
template <class T, class Op, class Update, std::size_t Most>
struct CombineGroups {
  const Accumulator<T>* first;  ///< null if the first group has no replicas
  const Accumulator<T>* second;
  std::size_t replicas;
  const T* mine;
  T* mirrors[Most];
  std::size_t count;
  Update update;

  DIST_HD void operator()(std::size_t i) const {
    const Accumulator<T> combined = first == nullptr ? second[i] : Op{}(first[i], second[i]);
    const T changed = update(i, mine[i], static_cast<T>(Op::finish(combined, replicas)));
    for (std::size_t r = 0; r < Most; ++r)
      if (r < count) mirrors[r][i] = changed;
  }
};

}  // namespace detail

/// HierarchicalCopyAllReduce in device memory. In each group, one replica's queue combines the group's values into
/// scratch memory, then reads the other group's and writes the result to its group. Replica 0 applies updates for all.
/// `Scratch{queue, bytes}` is memory of the queue's device that starts at `data()`.
template <Device Of, class Scratch>
struct HierarchicalCollectives {
  /// The collectives of which this type replaces the all-reduce, and whose updates replica 0 applies for all.
  using Direct = DirectCollectives<Of, HierarchicalCopyAllReduce, detail::AllOnFirst>;

  /// Adds, for each replica, memory for its group's combined values, and the event of their completion, which is
  /// reused: it is recorded after all have published a collective, that is, after waiting for the previous event.
  template <class D>
  class State : public Direct::template State<D> {
   public:
    /// Throws InvalidArgument if there are too many replicas.
    State(const typename D::Queues& queues, std::size_t replicas)
        : Direct::template State<D>(queues, replicas), scratch_(replicas) {
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        queues_.push_back(queues[replica]);
        combined.emplace_back(queues[replica]);
      }
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    /// Waits for the queues. If that fails, leaks memory that kernels may still use.
    ~State() {
      try {
        for (const auto& queue : queues_) queue.wait();
      } catch (const Error&) {
        for (OfReplica& scratch : scratch_) static_cast<void>(scratch.memory.release());
      }
    }

    /// Makes room for the values that the replica combines. Its thread calls this before a collective.
    void reserve(std::size_t replica, std::size_t bytes) {
      OfReplica& scratch = scratch_[replica];
      if (bytes <= scratch.bytes) return;
      queues_[replica].wait();  // after this, no replica reads its last values
      scratch = {};
      scratch = {std::make_unique<Scratch>(queues_[replica], bytes), bytes};
    }
    /// Returns the address of the values that the replica combines, or null if it has no room yet.
    template <class T>
    [[nodiscard]] T* combined_by(std::size_t replica) const noexcept {
      const OfReplica& scratch = scratch_[replica];
      return scratch.memory == nullptr ? nullptr : reinterpret_cast<T*>(scratch.memory->data());
    }

    std::vector<typename D::Queue::Event> combined;  ///< per replica: the values of its group are combined

   private:
    struct OfReplica {
      std::unique_ptr<Scratch> memory;
      std::size_t bytes = 0;
    };
    std::vector<typename D::Queue> queues_;
    std::vector<OfReplica> scratch_;
  };

  /// The collectives of one replica, a member of `C` with its own queue.
  template <SharesMemory C>
  class On : public Direct::template On<C> {
    using OfShares = typename Direct::template On<C>;
    using typename OfShares::Host;
    using typename OfShares::Queue;
    template <class T>
    using Span = typename Of::template Span<T>;

   public:
    On(Host host, const Queue& queue, State<Of>& state) : OfShares(std::move(host), queue, state), groups_(&state) {}
    On(C comm, const Queue& queue, State<Of>& state) : On(Host{comm}, queue, state) {}

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      return On{Host::with_timeout(timeout), this->queue(), *groups_};
    }

    using Host::all_reduce;
    using Host::reduce_and_apply;
    using Host::reduce_scatter;

    template <class T, ReduceOp<T> Op>
    void all_reduce(Op, Span<T> values) const {
      const std::size_t main = *this->tensors_ % this->size();
      in_groups<Op, T>("all_reduce", main, values, values, [&](std::span<T* const> all) {
        ++*this->tensors_;  // after all have arrived: replicas that caught an error agree with the others
        const IndexRange group = this->my_group();
        if (this->combines(main))
          put_result<Op, T>(main, values.size(), all.subspan(group.begin, group.size()), this->rank() - group.begin,
                            detail::TakeReduced{});
      });
    }
    /// Replica 0 always applies the update, because it holds the optimizer's slots, and writes all mirrors.
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op, Span<const T> gradient, Span<T> mirror, const Update& update) const {
      in_groups<Op, T>("reduce_and_apply", 0, gradient, mirror, [&](std::span<T* const> mirrors) {
        if (this->rank() == 0) put_result<Op, T>(0, mirror.size(), mirrors, 0, update);
      });
    }
    /// Reduces all values into `kept` of replica 0. Returns the range that this replica holds.
    template <class T, ReduceOp<T> Op>
    IndexRange reduce_scatter(Op, Span<T> values, Span<T> kept) const {
      in_groups<Op, T>("reduce_scatter", 0, values, kept, [&](std::span<T* const> all) {
        if (this->rank() == 0) put_result<Op, T>(0, kept.size(), all.first(1), 0, detail::TakeReduced{});
      });
      return this->template share_of<T>(kept.size());
    }

   private:
    /// Calls `put(operands)` with the memory that all replicas lend to be written. The queues of the combining replicas
    /// (see `main_of`) wait for both groups' combined values before.
    template <class Op, class T, class Put>
    void in_groups(std::string_view operation, std::size_t main, Span<const T> from, Span<T> to, Put&& put) const {
      const bool combines = this->combines(main);
      if (combines) groups_->reserve(this->rank(), from.size() * sizeof(Accumulator<T>));
      // The combining replica is part of the call, as for host memory.
      const CollectiveCall call{.operation = operation,
                                .reduction = Op::name,
                                .elements = to.size(),
                                .dtype = detail::dtype_on_device<T>,
                                .root = main};
      this->together(call, {.read = from.data(), .write = to.data()}, [&] {
        const auto to_all = this->template operands<T>();  // the peers' operands are accessible until the barrier
        if (combines) {
          put_group<Op, T>(from.size());
          this->queue().record(groups_->combined[this->rank()]);
        }
        this->communicator().barrier();
        if (combines)
          for (const IndexRange group : {this->first_group(), this->second_group()})
            if (group.size() > 0) this->queue().wait_for(groups_->combined[this->main_of(group, main)]);
        put(std::span{to_all}.first(this->size()));
      });
    }

    template <class Op, class T>
    void put_group(std::size_t elements) const {
      constexpr std::size_t most = (Direct::most_replicas + 1) / 2;
      const auto all = this->template operands<const T>();
      const IndexRange group = this->my_group();
      detail::CombineGroup<T, Op, most> body{
          {}, group.size(), groups_->template combined_by<Accumulator<T>>(this->rank())};
      std::copy_n(all.begin() + group.begin, group.size(), body.values);
      this->queue().for_each({0, elements}, body);
    }
    /// Updates `mirrors`. This replica's own is `mirrors[own]`.
    template <class Op, class T, class Update>
    void put_result(std::size_t main, std::size_t elements, std::span<T* const> mirrors, std::size_t own,
                    const Update& update) const {
      using Wide = Accumulator<T>;
      const auto of_group = [&](IndexRange group) -> const Wide* {
        return group.size() == 0 ? nullptr : groups_->template combined_by<Wide>(this->main_of(group, main));
      };
      detail::CombineGroups<T, Op, Update, Direct::most_replicas> body{of_group(this->first_group()),
                                                                       of_group(this->second_group()),
                                                                       this->size(),
                                                                       mirrors[own],
                                                                       {},
                                                                       mirrors.size(),
                                                                       update};
      std::copy_n(mirrors.begin(), mirrors.size(), body.mirrors);
      this->queue().for_each({0, elements}, body);
    }

    State<Of>* groups_;
  };
};

}  // namespace dist
