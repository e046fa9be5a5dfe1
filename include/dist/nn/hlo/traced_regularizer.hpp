/// Regularization losses of networks in programs for XLA.
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/losses/average_loss.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/regularizer.hpp>

namespace dist::nn {

namespace detail {

/// A regularizer whose functions take all weights of a program at once.
template <class R, class Weights>
concept RegularizerOf = requires(const R regularizer, Weights weights) {
  { regularizer.term(weights) } -> std::same_as<Weights>;
  { regularizer.slope(weights) } -> std::same_as<Weights>;
};

/// `values` of the elements of parameters that are regularised, and 0 for the others and between them.
template <hlo::TracedArray Weights, class Network, class Which>
[[nodiscard]] Weights of_regularized(Network& network, const Which& which, Weights values) {
  std::vector<hlo::Value> parts;
  std::size_t first = 0;
  const auto add = [&](std::size_t end, bool is_regularized) {
    if (end > first)
      parts.push_back(hlo::untyped::constant({hlo::element_kind<bool>, Shape{end - first}}, is_regularized ? 1 : 0));
    first = end;
  };
  for (const Parameter& parameter : network.layout()) {
    add(parameter.offset, false);
    add(elements_of(parameter).end, which(parameter));
  }
  add(Weights::elements, false);
  const typename Weights::template With<bool> chosen{hlo::untyped::concatenate(parts, 0)};
  return hlo::select(chosen, values, Weights{0});
}

/// All weights of a network, in the program.
template <class Network>
[[nodiscard]] auto weights_of(const InTrace auto& replica, Network& network) {
  return replica.read(network.parameters()).template as<Network::padded_count>();
}

template <class R, class Weights>
constexpr void require_regularizer_of_programs() {
  static_assert(
      dist::detail::holds<RegularizerOf<R, Weights>>,
      "this regularizer is not one for programs: give it templates of term and slope over their number type, an "
      "nn::Real");
}

}  // namespace detail

/// What nn::total_regularization is in a step that is traced.
template <class R, class Network, class Which>
[[nodiscard]] hlo::Traced<double> traced_regularization(RegularizerInTrace, const InTrace auto& replica,
                                                        Network& network, const R& regularizer, const Which& which) {
  const auto weights = detail::weights_of(replica, network);
  detail::require_regularizer_of_programs<R, std::remove_const_t<decltype(weights)>>();
  const auto terms = detail::of_regularized(network, which, regularizer.term(weights));
  return hlo::reduce(sum, terms.template as<double>());
}

/// What nn::add_regularization_gradients is in a step that is traced.
template <class R, class Network, class Which>
void add_traced_regularization(RegularizerInTrace, const InTrace auto& replica, Network& network, const R& regularizer,
                               const Which& which) {
  const auto weights = detail::weights_of(replica, network);
  using Weights = std::remove_const_t<decltype(weights)>;
  detail::require_regularizer_of_programs<R, Weights>();
  const Weights slopes = detail::of_regularized(network, which, regularizer.slope(weights));
  const auto share = scale_regularization_loss(replica, hlo::Traced<typename Weights::Element>{1});
  network.add_gradients(replica, slopes * Weights{share});
}

}  // namespace dist::nn
