#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/comm/all_gather.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

namespace dist {

/// All-reduce between the processes of one node: ThreadAllReduce, in place, of what lies in the processes'
/// windows, which is where a strategy keeps variables and gradients. Other operands are copied there and back.
struct NodeAllReduce {
  static constexpr std::string_view name = "NodeAllReduce";

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = SharesWindow<C>;

  template <class C>
  class On : public Membership<C> {
    static_assert(fits<C>,
                  "NodeAllReduce needs processes that map each other's memory: use a communicator that models "
                  "SharesWindow, such as NodeCommunicator");
    using InWindow = ThreadAllReduce::On<C>;

   public:
    explicit On(C communicator) : Membership<C>(communicator), in_window_(communicator) {}

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    template <class T, ReduceOp<T> Op>
    void all_reduce(Op op, std::span<T> values) const {
      if (values.size_bytes() <= C::exchange_capacity) return in_window_.all_reduce(op, values);
      if constexpr (detail::has_levels<C> && std::same_as<Accumulator<T>, T>)
        if (values.size_bytes() >= in_parts_from && comm_.local().size() > 1 && comm_.processes() > 1 &&
            comm_.processes() < 4 * comm_.local().size())
          return all_reduce_in_parts(op, values);
      const Staged<T> staged{comm_, 0, values};
      in_window_.all_reduce(op, staged.elements());
      staged.copy_back();
    }
    /// Gives member 0 the reduction of the values of all in `sums`, which lies in its window and may be its values
    /// there; each member reduces a part. The others' `sums` are not used. A collective call, announced as `call`.
    template <class T, ReduceOp<T> Op>
    void reduce(const CollectiveCall& call, Op op, std::span<const T> values, std::span<T> sums) const {
      const Staged<const T> staged{comm_, 0, values};
      const detail::Borrowed loan{comm_};
      comm_.publish(call, {.read = staged.elements().data(), .write = sums.data()});
      detail::reduce_range<T>(op, comm_, shard_of(values.size(), comm_.rank(), comm_.size(), cache_line / sizeof(T)),
                              [&](std::size_t first, std::span<const T> reduced) {
                                std::copy(reduced.begin(), reduced.end(), comm_.template peer_to_write<T>(0) + first);
                              });
      comm_.barrier();
    }
    template <class T>
    void broadcast(std::size_t root, std::span<T> values) const {
      const Staged<T> staged{comm_, 0, values};
      dist::broadcast(comm_, root, staged.elements());
      staged.copy_back();
    }
    template <class T>
    void all_gather(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
      const Staged<const T> staged{comm_, 0, mine};
      dist::all_gather(comm_, staged.elements(), counts, all);
    }
    template <class T>
    void all_gather_values(std::string_view operation, const T& mine, std::span<T> all_values) const {
      if constexpr (sizeof(T) <= C::exchange_capacity) {
        dist::all_gather_values(comm_, operation, mine, all_values);
      } else {
        DIST_EXPECT(all_values.size() == comm_.size());
        const Staged<const T> staged{comm_, 0, std::span<const T>{&mine, 1}};
        const detail::Borrowed loan{comm_};
        comm_.publish({.operation = operation, .elements = sizeof(T), .dtype = "exchanged bytes"},
                      {.read = staged.elements().data()});
        for (std::size_t rank = 0; rank < all_values.size(); ++rank) all_values[rank] = *comm_.template peer<T>(rank);
        comm_.barrier();
      }
    }
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
      const Staged<const T> gradients{comm_, 0, gradient};
      const Staged<T> mirrors{comm_, 1, mirror};
      in_window_.reduce_and_apply(op, gradients.elements(), mirrors.elements(), update);
      mirrors.copy_back();
    }
    template <class T, ReduceOp<T> Op, class Use>
    void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
      const Staged<const T> staged{comm_, 0, values};
      in_window_.reduce_scatter(op, staged.elements(), use);
    }
    template <class T, ElementUpdate<T> Update>
    void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
      const Staged<T> staged{comm_, 0, mirror};
      in_window_.update_shards(gradients, staged.elements(), update);
      staged.copy_back();
    }

   private:
    /// Fewer bytes are copied to the window sooner than the processes have met once more.
    static constexpr std::size_t in_parts_from = std::size_t{128} << 10;

    /// Of replicas of several processes, where each copy costs: in place where all operands lie in a window. Else each
    /// process sums its replicas' values into one stage, and each replica combines its part of all stages and writes it
    /// to all operands of its process.
    template <class T, class Op>
    void all_reduce_in_parts(Op op, std::span<T> values) const {
      const CollectiveCall call{
          .operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
      const auto here = comm_.local();
      const bool brings_stage = here.rank() == 0 && !comm_.holds(values.data(), values.size_bytes());
      T* const stage = brings_stage ? comm_.template stage<T>(2, values.size()).data() : nullptr;
      const detail::Borrowed loan{comm_};
      const Operand values_of_mine{.read = values.data(), .write = values.data()};
      comm_.publish(call, values_of_mine);
      if (comm_.count_reachable(1) == comm_.size()) {
        detail::reduce_in_place<T>(op, comm_,
                                   shard_of(values.size(), comm_.rank(), comm_.size(), cache_line / sizeof(T)));
        return comm_.barrier();
      }
      if (comm_.count_reachable(here.size()) != 0) {  // some processes bring no stage
        const Staged<T> staged{comm_, 0, values};
        in_window_.all_reduce(op, staged.elements());
        return staged.copy_back();
      }
      // The operands need not outlive this function: they are lent within the process, while they are used.
      const detail::Borrowed lent{here};
      const IndexRange part = shard_of(values.size(), here.rank(), here.size(), cache_line / sizeof(T));
      here.publish(call, {.read = values.data(), .write = stage});
      for_each_block<T>(part, [&](std::size_t first, std::size_t count) DIST_INLINE_LAMBDA {
        detail::reduce_block(detail::Unfinished<Op>{}, here.size(),
                             std::span<T>{here.template peer_to_write<T>(0) + first, count},
                             [&](std::size_t replica) { return here.template peer<T>(replica) + first; });
      });
      comm_.publish(call, {.read = stage});  // all stages are complete
      here.publish(call, values_of_mine);
      for_each_block<T>(part, [&](std::size_t first, std::size_t count) DIST_INLINE_LAMBDA {
        const std::span<T> mine = values.subspan(first, count);
        detail::reduce_block(detail::Unfinished<Op>{}, comm_.processes(), mine, [&](std::size_t process) {
          return comm_.template peer<T>(process * here.size()) + first;
        });
        for (T& value : mine) value = Op::finish(value, comm_.size());
        for (std::size_t replica = 0; replica < here.size(); ++replica)
          if (replica != here.rank())
            std::copy(mine.begin(), mine.end(), here.template peer_to_write<T>(replica) + first);
      });
      here.barrier();
    }
    template <class T, class Use>
    static void for_each_block(IndexRange range, Use&& use) {
      detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
        for (std::size_t first = range.begin; first < range.end; first += detail::block_elements<T>)
          use(first, std::min(detail::block_elements<T>, range.end - first));
      });
    }

    /// Values in the window: themselves, or a copy.
    template <class T>
    class Staged {
      using Element = std::remove_const_t<T>;

     public:
      Staged(const C& comm, int which, std::span<T> values) : values_(values), staged_(values) {
        if (values.empty() || comm.holds(values.data(), values.size_bytes())) return;
        const std::span<Element> copy = comm.template stage<Element>(which, values.size());
        std::copy(values.begin(), values.end(), copy.begin());
        staged_ = copy;
      }
      [[nodiscard]] std::span<T> elements() const noexcept { return staged_; }
      void copy_back() const {
        if (staged_.data() != values_.data()) std::copy(staged_.begin(), staged_.end(), values_.begin());
      }

     private:
      std::span<T> values_;
      std::span<T> staged_;
    };

    using Membership<C>::comm_;

    InWindow in_window_;
  };
};

}  // namespace dist
