#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/optimizers/slot_update.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

/// The slots of an optimizer, each as long as the parameters, and who keeps them: with steps that aggregate, every
/// element belongs to the replica that updates it for all; with steps that do not, each replica has a whole one.
template <class S, class T>
class OptimizerSlots {
 public:
  using Slot = decltype(std::declval<S&>().template variable<T, OnRead, Sum>(Shape{}, 0, std::string{}));

  /// One for each of `names`, of so many elements, for the optimizer of that name. Throws OutOfMemory.
  OptimizerSlots(S& strategy, std::string_view optimizer, std::span<const std::string_view> names, std::size_t elements)
      : optimizer_(optimizer), kind_(strategy.template buffer<std::int64_t>(Shape{1}, text(optimizer, "/kind"))) {
    slots_.reserve(names.size());
    for (const std::string_view name : names)
      slots_.push_back(strategy.template variable<T, OnRead, Sum>(Shape{elements}, 0, text(optimizer, "/", name)));
  }

  [[nodiscard]] std::span<const Slot> all() const noexcept { return slots_; }
  /// Throws InvalidArgument for a slot that there is not.
  [[nodiscard]] const Slot& named(std::string_view name) const {
    std::string names;
    for (const Slot& slot : slots_) {
      if (slot.name() == text(optimizer_, "/", name)) return slot;
      names += text(names.empty() ? "" : ", ", slot.name());
    }
    throw InvalidArgument(text("Optimizer ", optimizer_, " has no slot '", name, "'"), text("it has ", names),
                          text("Use what follows ", optimizer_, "/ in one of these names"));
  }

  /// Whether each replica has whole slots.
  [[nodiscard]] bool whole_on_each(const InCrossReplica auto& scope) const {
    return kind_.component(scope, 0)[0] == whole;
  }
  /// Says that a step aggregates, or does not. Throws InvalidArgument where one of the other kind came before.
  void require_kind(const InReplica auto& replica, bool aggregates) const {
    if (slots_.empty() || replica.num_replicas_in_sync() == 1) return;
    std::int64_t& kind = kind_.component(replica)[0];
    const std::int64_t now = aggregates ? shared_out : whole;
    if (kind != 0 && kind != now)
      throw InvalidArgument(text("Optimizer ", optimizer_, " was used with and without nn::skip_aggregation"),
                            "with aggregation its slots are shared out among the replicas, without it each has its own",
                            "Use one kind of apply_gradients, or two optimizers");
    kind = now;
  }

  /// The update of a functor with these slots.
  template <class Functor>
  [[nodiscard]] SlotUpdate<Functor, T> update(const InReplica auto& replica, const Functor& functor) const {
    SlotUpdate<Functor, T> update{functor, {}};
    for (std::size_t k = 0; k < update.slot_count; ++k) update.slots[k] = slots_[k].component(replica).data();
    return update;
  }

  /// Writes `given[0]`, `given[1]`, … to the elements of `range`, of whoever keeps them.
  template <class Given>
  void assign(const InCrossReplica auto& scope, const Slot& slot, IndexRange range, const Given& given) const {
    const bool each_has_all = whole_on_each(scope);
    auto passed = scope.strategy().template buffer<T>(Shape{slot.size()}, text(optimizer_, "/assigned"));
    scope.strategy().run([&](auto& replica) {
      const std::span<T> mine = slot.component(replica);
      const WriteSlot<Given> write{mine.data(), range, given};
      if (each_has_all) {
        for (std::size_t i = range.begin; i < range.end; ++i) static_cast<void>(write(i, T{}, T{}));
        return;
      }
      std::fill_n(mine.data() + range.begin, range.size(), T{0});
      replica.barrier();  // one copy may be that of all
      const std::span<T> elements = passed.component(replica);
      replica.update_shards(elements, elements, write);
    });
  }

 private:
  /// The steps so far were of that kind.
  static constexpr std::int64_t shared_out = 1;
  static constexpr std::int64_t whole = 2;

  /// Writes the slot where an element of `range` would be updated, and leaves what is updated as it is.
  template <class Given>
  struct WriteSlot {
    T* slot;
    IndexRange range;
    Given given;

    DIST_HD T operator()(std::size_t i, T passed, T) const {
      if (range.begin <= i && i < range.end) slot[i] = given[i - range.begin];
      return passed;
    }
  };

  std::string_view optimizer_;
  std::vector<Slot> slots_;
  decltype(std::declval<S&>().template buffer<std::int64_t>(Shape{}, std::string{})) kind_;
};

}  // namespace dist::nn
