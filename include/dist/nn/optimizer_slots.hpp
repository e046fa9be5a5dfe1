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
#include <dist/nn/tracked_buffer.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/slot_update.hpp>
#include <dist/variable/store/owner.hpp>
#include <dist/variable/write.hpp>

namespace dist::nn {

/// The slots of an optimizer, each as long as the parameters, and who keeps them: with steps that aggregate, every
/// element belongs to the replica that updates it for all, which `Owners` says (OnShard, or a type derived from it); with
/// steps that do not, each replica has a whole one.
template <class S, class T, class Owners = OnShard>
class OptimizerSlots {
 public:
  using Slot = DistributedVariable<T, Owners, None, typename S::Device>;

  /// One for each of `names`, as long as the variable `parameters`, for the optimizer of that name; `layout`, which must outlive
  /// this, says where the parameters lie. Throws OutOfMemory.
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

  [[nodiscard]] std::span<const Slot> all() const noexcept { return slots_; }
  /// Throws InvalidArgument for a slot that there is not.
  [[nodiscard]] const Slot& named(std::string_view name) const {
    std::string names;
    for (const Slot& slot : slots_) {
      if (slot.name() == concat(optimizer_, "/", name)) return slot;
      names += concat(names.empty() ? "" : ", ", slot.name());
    }
    throw InvalidArgument(concat("Optimizer ", optimizer_, " has no slot '", name, "'"), concat("it has ", names),
                          concat("Use what follows ", optimizer_, "/ in one of these names"));
  }

  /// Whether each replica has whole slots, its own or all the same.
  [[nodiscard]] bool whole_on_each(const InCrossReplica auto& scope) const {
    const std::int64_t kind = kind_.component(scope, 0)[0];
    return kind == whole_on_all || kind == same_on_all;
  }
  /// Says that a step aggregates, or does not. Throws InvalidArgument where one of the other kind came before.
  void require_kind(const InReplica auto& replica, bool aggregates) const {
    if (slots_.empty() || replica.num_replicas_in_sync() == 1) return;
    std::int64_t& kind = kind_.component(replica)[0];
    require_same_kind(kind, aggregates);
    kind = aggregates ? shared_out : whole_on_all;
  }
  /// The same of a step that is compiled, whose replicas all have whole slots, before it runs: where they were shared out,
  /// every replica gets them.
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

  /// The update of a functor with these slots.
  template <class Functor>
  [[nodiscard]] SlotUpdate<Functor, T> update(const InReplica auto& replica, const Functor& functor) const {
    SlotUpdate<Functor, T> update{functor, {}};
    if constexpr (RemoteStore<typename S::Store>) return update;  // applied where the slots lie
    for (std::size_t k = 0; k < slots_.size(); ++k) update.slots[k] = slots_[k].component(replica).data();
    return update;
  }

  /// The number of the first slot, where they lie beside the parameters on servers.
  [[nodiscard]] std::uint32_t first_on_servers() const {
    return slots_.empty() ? 0 : S::Store::on_servers(slots_[0])->spec().array - 1;
  }

  /// All of a slot: what its owners have, or where each replica has a whole one, replica 0's.
  [[nodiscard]] Tensor<T> whole(const InCrossReplica auto& scope, const Slot& slot) const {
    if (!whole_on_each(scope)) return slot.whole(scope);
    Tensor<T> all{slot.shape()};
    dist::detail::copy_and_wait(slot.queue(scope, 0), slot.component(scope, 0), all.elements());
    return all;
  }
  /// Its inverse: to the owners, or before it is known of which kind steps are, to every replica.
  void restore(const InCrossReplica auto& scope, const Slot& slot, TensorView<const T> values) const {
    const auto given = dist::detail::given_to(slot, values);
    if (kind_.component(scope, 0)[0] == shared_out)
      OwnerStore::restore(slot, scope, given);
    else
      dist::detail::update_every_copy(slot, scope, IndexRange{0, slot.size()}, given, dist::detail::Assign{});
  }
  /// Writes `given[0]`, `given[1]`, … to the elements of `range`, of whoever keeps them.
  template <class Given>
  void assign(const InCrossReplica auto& scope, const Slot& slot, IndexRange range, const Given& given) const {
    Tensor<T> all = whole(scope, slot);
    for (std::size_t i = range.begin; i < range.end; ++i) all[i] = given[i - range.begin];
    restore(scope, slot, all);
  }

  /// The kind of the steps so far, and every slot by its name in the functor, in the parts that belong to the parameters
  /// of the layout, if there is one. See Trackable.
  void track(auto& visit) {
    visit("kind", TrackedBuffer<decltype(kind_), OnlyFirstReplica>{kind_});
    for (const Slot& slot : slots_)
      detail::visit_parts(visit, std::string_view{slot.name()}.substr(optimizer_.size() + 1), Whole{this, &slot},
                          layout_);
  }

 private:
  /// The steps so far were of that kind: they aggregate, and each replica has its part of a slot; they do not, and each has a
  /// slot of its own; they aggregate in a program, and all have the same.
  static constexpr std::int64_t shared_out = 1;
  static constexpr std::int64_t whole_on_all = 2;
  static constexpr std::int64_t same_on_all = 3;

  void require_same_kind(std::int64_t before, bool aggregates) const {
    if (before != 0 && (before != whole_on_all) != aggregates)
      throw InvalidArgument(concat("Optimizer ", optimizer_, " was used with and without nn::skip_aggregation"),
                            "with aggregation its slots are shared out among the replicas, without it each has its own",
                            "Use one kind of apply_gradients, or two optimizers");
  }

  /// A slot as a leaf of a walk.
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
