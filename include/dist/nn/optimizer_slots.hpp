#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/variable/copies.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/slot_update.hpp>
#include <dist/variable/store.hpp>

namespace dist::nn {

namespace detail {
[[noreturn]] void refuse_mixed_aggregation(std::string_view optimizer);
}

/// An optimizer's slots, each of the parameters' size. With aggregation, elements belong to the replica that updates
/// them for all, determined by `Owners` (OnShard or derived from it). Without it, each replica has whole slots.
template <class S, class T, class Owners = OnShard>
class OptimizerSlots {
 public:
  /// The variable of one slot.
  using Slot = DistributedVariable<T, Owners, None, typename S::Device>;

  /// Creates a slot of the size of variable `parameters` for each of `names`. `layout`, the places of the parameters,
  /// must outlive this object. Throws OutOfMemory.
  template <class Parameters>
  OptimizerSlots(S& strategy, std::string_view optimizer, std::span<const std::string_view> names,
                 const Parameters& parameters, std::span<const Parameter> layout = {})
      : optimizer_(optimizer),
        layout_(layout),
        kind_(strategy.template host_buffer<std::int64_t>(Shape{1}, concat(optimizer, "/kind"))) {
    slots_.reserve(names.size());
    if constexpr (RemoteStore<typename S::Store>) {
      std::uint32_t next = S::Store::on_servers(parameters)->take_slots(names.size());
      for (const std::string_view name : names)
        slots_.push_back(strategy.template slot<Owners>(parameters, next++, concat(optimizer, "/", name)));
    } else {
      for (const std::string_view name : names)
        slots_.push_back(
            strategy.template variable<T, Owners, None>(Shape{parameters.size()}, 0, concat(optimizer, "/", name)));
    }
  }

  /// The slots in the order of their names.
  [[nodiscard]] std::span<const Slot> all() const noexcept { return slots_; }
  /// Returns a slot by name. Throws InvalidArgument if it is missing.
  [[nodiscard]] const Slot& named(std::string_view name) const {
    std::string names;
    for (const Slot& slot : slots_) {
      if (slot.name() == concat(optimizer_, "/", name)) return slot;
      names += concat(names.empty() ? "" : ", ", slot.name());
    }
    throw InvalidArgument(concat("Optimizer ", optimizer_, " has no slot '", name, "'"), concat("it has ", names),
                          concat("Use the part after ", optimizer_, "/ of one of these names"));
  }

  /// True if each replica has whole slots, equal or not.
  [[nodiscard]] bool whole_on_each(const InCrossReplica auto& scope) const {
    const std::int64_t kind = kind_.component(scope, 0)[0];
    return kind == whole_on_all || kind == same_on_all;
  }
  /// Stores whether steps aggregate. Throws InvalidArgument after a step of the other kind.
  void require_kind(const InReplica auto& replica, bool aggregates) const {
    if (slots_.empty() || replica.num_replicas_in_sync() == 1) return;
    std::int64_t& kind = kind_.component(replica)[0];
    require_same_kind(kind, aggregates);
    kind = aggregates ? shared_out : whole_on_all;
  }
  /// Stores whether steps aggregate, before a compiled step, where all replicas have whole slots; sharded ones become
  /// whole. Throws InvalidArgument after a step of the other kind.
  void require_kind_in_program(const InCrossReplica auto& scope, bool aggregates) const {
    const std::size_t replicas = scope.strategy().num_local_replicas();
    if (slots_.empty() || replicas == 1) return;
    const std::int64_t now = aggregates ? same_on_all : whole_on_all;
    const std::int64_t before = kind_.component(scope, 0)[0];
    if (before == now) return;
    require_same_kind(before, aggregates);
    std::vector<Tensor<T>> all;
    if (before == shared_out)
      for (const Slot& slot : slots_) all.push_back(slot.whole(scope));
    for (std::size_t local = 0; local < replicas; ++local) kind_.component(scope, local)[0] = now;
    for (std::size_t k = 0; k < all.size(); ++k) restore(scope, slots_[k], all[k]);
  }

  /// Returns the update of a functor with these slots.
  template <class Functor>
  [[nodiscard]] SlotUpdate<Functor, T> update(const InReplica auto& replica, const Functor& functor) const {
    SlotUpdate<Functor, T> update{functor, {}};
    if constexpr (RemoteStore<typename S::Store>) return update;  // applied on the servers of the slots
    for (std::size_t k = 0; k < slots_.size(); ++k) update.slots[k] = slots_[k].component(replica).data();
    return update;
  }

  /// Returns the number of the first slot on servers.
  [[nodiscard]] std::uint32_t first_on_servers() const {
    return slots_.empty() ? 0 : S::Store::on_servers(slots_[0])->spec().array - 1;
  }

  /// Returns a whole slot: from its owners, or replica 0's.
  [[nodiscard]] Tensor<T> whole(const InCrossReplica auto& scope, const Slot& slot) const {
    if (!whole_on_each(scope)) return slot.whole(scope);
    Tensor<T> all{slot.shape()};
    dist::detail::copy_and_wait(slot.queue(scope, 0), slot.component(scope, 0), all.elements());
    return all;
  }
  /// Assigns a whole slot: to its owners if slots are sharded, else to every replica.
  void restore(const InCrossReplica auto& scope, const Slot& slot, TensorView<const T> values) const {
    const auto given = dist::detail::given_to(slot, values);
    if (kind_.component(scope, 0)[0] == shared_out)
      OwnerStore::restore(slot, scope, given);
    else
      dist::detail::update_every_copy(slot, scope, IndexRange{0, slot.size()}, given, dist::detail::Assign{});
  }
  /// Assigns `given[0]`, `given[1]`, … to the elements of `range`, on all replicas that store them.
  template <class Given>
  void assign(const InCrossReplica auto& scope, const Slot& slot, IndexRange range, const Given& given) const {
    Tensor<T> all = whole(scope, slot);
    for (std::size_t i = range.begin; i < range.end; ++i) all[i] = given[i - range.begin];
    restore(scope, slot, all);
  }

  /// Tracks the kind of steps, and every slot by its name in the functor, split by `layout` if given. See Trackable.
  void track(auto& visit) {
    visit("kind", TrackedBuffer<decltype(kind_), OnlyFirstReplica>{kind_});
    for (const Slot& slot : slots_)
      detail::visit_parts(visit, std::string_view{slot.name()}.substr(optimizer_.size() + 1), Whole{this, &slot},
                          layout_);
  }

 private:
  /// Kinds of steps: aggregated, with sharded slots; not aggregated, with different whole slots; aggregated in a
  /// program, with equal whole slots.
  static constexpr std::int64_t shared_out = 1;
  static constexpr std::int64_t whole_on_all = 2;
  static constexpr std::int64_t same_on_all = 3;

  void require_same_kind(std::int64_t before, bool aggregates) const {
    if (before != 0 && (before != whole_on_all) != aggregates) detail::refuse_mixed_aggregation(optimizer_);
  }

  /// A slot as a leaf of a walk (Trackable).
  struct Whole {
    using Element = T;

    const OptimizerSlots* slots;
    const Slot* slot;

    [[nodiscard]] const Shape& shape() const noexcept { return slot->shape(); }
    [[nodiscard]] Tensor<T> whole(const InCrossReplica auto& scope) const { return slots->whole(scope, *slot); }
    void restore(const InCrossReplica auto& scope, TensorView<const T> values) const {
      slots->restore(scope, *slot, values);
    }
  };

  std::string_view optimizer_;
  std::span<const Parameter> layout_;
  std::vector<Slot> slots_;
  decltype(std::declval<S&>().template host_buffer<std::int64_t>(Shape{}, std::string{})) kind_;
};

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/nn/optimizer_slots.ipp>
#endif
