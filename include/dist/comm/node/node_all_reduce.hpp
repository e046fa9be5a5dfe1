#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/comm/all_gather.hpp>
#include <dist/comm/broadcast.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/exchange.hpp>
#include <dist/comm/membership.hpp>
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// All-reduce between the processes of one node: SharedMemoryAllReduce, in place, of what lies in the processes'
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
    using InWindow = SharedMemoryAllReduce::On<C>;

   public:
    explicit On(C communicator) : Membership<C>(communicator), in_window_(communicator) {}

    /// The same collectives, which wait longer or shorter for other members (spec H13).
    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    /// Replaces the values of every member by their reduction. A collective call.
    template <class T, ReduceOp<T> Op>
    void all_reduce(Op op, std::span<T> values) const {
      if (values.size_bytes() <= C::exchange_capacity) return in_window_.all_reduce(op, values);
      const Staged<T> staged{comm_, 0, values};
      in_window_.all_reduce(op, staged.elements());
      staged.copy_back();
    }
    /// Gives every member the values of member `root`. A collective call.
    template <class T>
    void broadcast(std::size_t root, std::span<T> values) const {
      const Staged<T> staged{comm_, 0, values};
      dist::broadcast(comm_, root, staged.elements());
      staged.copy_back();
    }
    /// Gives every member the values of all, in rank order. A collective call.
    template <class T>
    void all_gather(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
      const Staged<const T> staged{comm_, 0, mine};
      dist::all_gather(comm_, staged.elements(), counts, all);
    }
    /// Gives every member one small value of each. A collective call.
    template <class T>
    void exchange(std::string_view operation, const T& mine, std::span<T> of_all) const {
      if constexpr (sizeof(T) <= C::exchange_capacity) {
        dist::exchange(comm_, operation, mine, of_all);
      } else {
        DIST_EXPECT(of_all.size() == comm_.size());
        const Staged<const T> staged{comm_, 0, std::span<const T>{&mine, 1}};
        comm_.publish({.operation = operation, .elements = sizeof(T), .dtype = "exchanged bytes"},
                      const_cast<T*>(staged.elements().data()));
        for (std::size_t rank = 0; rank < of_all.size(); ++rank) of_all[rank] = *comm_.template peer<T>(rank, 0);
        comm_.barrier();
      }
    }
    /// As SharedMemoryAllReduce. A collective call, like the following.
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op op, std::span<T> gradient, std::span<T> mirror, const Update& update) const {
      const Staged<T> gradients{comm_, 0, gradient};
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
