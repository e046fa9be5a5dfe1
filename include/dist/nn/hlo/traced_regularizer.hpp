/// Regularization losses of networks in programs for XLA.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <dist/context/in_trace.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/losses/average_loss.hpp>
#include <dist/nn/regularizer.hpp>

namespace dist::nn {

namespace detail {

/// A regularizer of all weights of a parameter in a program at once.
template <class R, class Weights>
concept RegularizerOf = requires(const R regularizer, Weights weights) {
  { regularizer.term(weights) } -> std::same_as<Weights>;
  { regularizer.slope(weights) } -> std::same_as<Weights>;
};

/// True if `R` supports programs; otherwise a static_assert explains why not.
template <class R, class Weights>
[[nodiscard]] constexpr bool require_regularizer_of_programs() {
  constexpr bool is_for_programs = RegularizerOf<R, Weights>;
  static_assert(is_for_programs,
                "this regularizer cannot be used in XLA programs: make its term and slope templates of the number "
                "type, an nn::Real");
  return is_for_programs;
}

/// Calls `use(index, weights)` for each chosen parameter, with its traced weights.
template <class R, class Network, class Which, class Use>
void for_each_regularized(const InTrace auto& replica, Network& network, const Which& which, const Use& use) {
  const auto weights = network.traced_parameters(replica);
  using Weights = std::remove_cvref_t<decltype(weights[0])>;
  if constexpr (require_regularizer_of_programs<R, Weights>())
    for (std::size_t number = 0; number < weights.size(); ++number)
      if (which(network.layout()[number])) use(number, weights[number]);
}

}  // namespace detail

/// The traced counterpart of nn::total_regularization.
template <class R, class Network, class Which>
[[nodiscard]] hlo::Traced<double> traced_regularization(RegularizerInTrace, const InTrace auto& replica,
                                                        Network& network, const R& regularizer, const Which& which) {
  hlo::Dynamic<double> total{0};
  detail::for_each_regularized<R>(replica, network, which, [&](std::size_t, const auto& weights) {
    total += regularizer.term(weights).template as<double>().sum();
  });
  return total.template as<>();
}

/// The traced counterpart of nn::add_regularization_gradients.
template <class R, class Network, class Which>
void add_traced_regularization(RegularizerInTrace, const InTrace auto& replica, Network& network, const R& regularizer,
                               const Which& which) {
  detail::for_each_regularized<R>(replica, network, which, [&](std::size_t number, const auto& weights) {
    using Element = typename std::remove_cvref_t<decltype(weights)>::Element;
    const auto share = scale_regularization_loss(replica, hlo::Traced<Element>{1});
    network.add_gradient(replica, number, regularizer.slope(weights) * share);
  });
}

}  // namespace dist::nn
