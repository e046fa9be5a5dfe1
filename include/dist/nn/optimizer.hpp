#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

namespace detail {

struct IgnoreUpdate {
  template <class Update>
  void operator()(Update) const {}
};

/// weight[i] = update(weight[i], gradient[i], slots of i), one vectorised loop. The slots are loaded into and
/// stored from registers, so the functor itself touches no memory.
template <class Update, class T, std::size_t Count, std::size_t... K>
DIST_ALWAYS_INLINE void update_elements(const Update update, std::span<T> weights, std::span<const T> gradients,
                                        const std::array<T*, Count>& slots, std::index_sequence<K...>) {
  T* const weight = weights.data();
  const T* const gradient = gradients.data();
  T* const slot[Count + 1] = {slots[K]..., nullptr};
  const std::size_t size = weights.size();
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < size; ++i) {
    T registers[Count + 1] = {slot[K][i]..., T{}};
    weight[i] = update(weight[i], gradient[i], registers);
    ((slot[K][i] = registers[K]), ...);
  }
}

}  // namespace detail

/// The arithmetic of an optimizer: a struct of hyper-parameters, with `check()` for their ranges, whose
/// `with_update<T>(iteration, apply)` calls `apply(update)` with the functor of this step.
///
/// The functor is trivially copyable; `update(weight, gradient, slots)` returns the new weight and changes
/// the element's slots, all in registers, so that a CPU loop, a ring's pass and a kernel can inline the same
/// one. `Update::slots` names the slots, and so says how many there are.
template <class O>
concept OptimizerFunction = std::copyable<O> &&
    requires(O optimizer, std::int64_t iteration, detail::IgnoreUpdate apply) {
  { O::name } -> std::convertible_to<std::string_view>;
  { optimizer.learning_rate } -> std::same_as<float&>;
  optimizer.check();
  optimizer.template with_update<float>(iteration, apply);
};

/// Applies gradients to the parameters of a network: `nn::Optimizer optimizer{strategy, net, nn::Adam{}};`
///
/// Slots are sharded: each replica keeps, and touches, only those of the parameters that it updates for all
/// (OnRead, Sum: read outside replica functions they are whole). Refers to the network, which must outlive
/// it.
template <class S, class Network, OptimizerFunction O>
class Optimizer {
 public:
  using Element = typename std::remove_cvref_t<decltype(std::declval<Network&>().parameters())>::Element;
  using Slot = decltype(std::declval<S&>().template variable<Element, OnRead, Sum>(Shape{}, 0, std::string{}));

  /// Throws InvalidArgument for hyper-parameters out of range, OutOfMemory.
  Optimizer(S& strategy, Network& network, O function)
      : function_(checked(std::move(function))),
        network_(&network),
        iterations_(strategy.template variable<std::int64_t, OnWrite, OnlyFirstReplica>(Shape{}, 0,
                                                                                        text(O::name, "/iterations"))) {
    const std::size_t parameters = network.parameters().size();
    function_.template with_update<Element>(1, [&](auto update) {
      slots_.reserve(update.slots.size());
      for (const std::string_view slot : update.slots)
        slots_.push_back(
            strategy.template variable<Element, OnRead, Sum>(Shape{parameters}, 0, text(O::name, "/", slot)));
    });
  }

  /// Sums the gradients over the replicas (spec P07) and updates every replica's parameters, in one pass over
  /// memory. Counts one iteration. A collective call.
  void apply_gradients(const InReplica auto& replica) {
    std::int64_t& iterations = iterations_.component(replica)[0];
    const std::int64_t iteration = iterations + 1;
    function_.template with_update<Element>(iteration, [&](const auto update) {
      constexpr std::size_t count = decltype(update)::slots.size();
      constexpr auto indices = std::make_index_sequence<count>{};
      const auto slots = components(replica, indices);
      replica.reduce_and_apply(sum, network_->gradients().component(replica), network_->parameters().component(replica),
                               [&](std::size_t first, std::span<Element> weights, std::span<const Element> gradients) {
                                 detail::update_elements(update, weights, gradients, offset(slots, first, indices),
                                                         indices);
                               });
    });
    iterations = iteration;  // every replica writes the same value, so there is nothing to aggregate (spec P12)
  }

  /// Global steps so far (spec P12).
  [[nodiscard]] std::int64_t iterations(const InCrossReplica auto& context) const { return iterations_.value(context); }
  [[nodiscard]] std::int64_t iterations(const InReplica auto& replica) const { return iterations_.value(replica); }

  [[nodiscard]] float learning_rate() const noexcept { return function_.learning_rate; }
  /// For the steps that follow; outside replica functions only. Throws InvalidArgument.
  void set_learning_rate(float rate) {
    O changed = function_;
    changed.learning_rate = rate;
    function_ = checked(std::move(changed));
  }

  [[nodiscard]] const O& function() const noexcept { return function_; }
  /// The state kept for each parameter, one variable as long as the parameters for each name of the functor's
  /// `slots`.
  [[nodiscard]] std::span<const Slot> slots() const noexcept { return slots_; }

 private:
  static O checked(O function) {
    function.check();
    return function;
  }

  template <std::size_t... K>
  [[nodiscard]] std::array<Element*, sizeof...(K)> components([[maybe_unused]] const auto& replica,
                                                              std::index_sequence<K...>) const {
    return {slots_[K].component(replica).data()...};
  }
  template <std::size_t... K>
  [[nodiscard]] static std::array<Element*, sizeof...(K)> offset(
      [[maybe_unused]] const std::array<Element*, sizeof...(K)>& slots, [[maybe_unused]] std::size_t first,
      std::index_sequence<K...>) {
    return {slots[K] + first...};
  }

  O function_;
  Network* network_;
  decltype(std::declval<S&>().template variable<std::int64_t, OnWrite, OnlyFirstReplica>(Shape{}, 0,
                                                                                         std::string{})) iterations_;
  std::vector<Slot> slots_;
};

template <class S, class Network, class O>
Optimizer(S&, Network&, O) -> Optimizer<S, Network, O>;

}  // namespace dist::nn
