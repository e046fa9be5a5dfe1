/// Layers that normalise parts of single rows, in programs for XLA.
#pragma once

#include <cstddef>
#include <tuple>

#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/hlo/rows.hpp>
#include <dist/nn/layers/group_normalization.hpp>

namespace dist::nn {

namespace detail {

/// (x - mean) / sqrt(variance + epsilon), times gamma and with beta for each channel, of the groups that `Geometry` names.
template <class Geometry, hlo::TracedArray X, hlo::TracedArray Channels>
[[nodiscard]] X group_normalized(X x, Channels gamma, Channels beta, double epsilon) {
  using T = typename X::Element;
  constexpr std::size_t width = Geometry::channels / Geometry::groups;
  constexpr std::size_t in_row = X::elements / (X::batch_axes == 0 ? X::extents[0] : 1);
  // All groups of a row: those of one channel after another lie side by side, at each of the pixels.
  using Groups = hlo::Traced<T, X::extents[0], in_row / (Geometry::pixels * Geometry::channels), Geometry::pixels,
                             Geometry::groups, width>;
  const auto of_channels = [](Channels values) {
    return hlo::broadcast<Groups, 3, 4>(hlo::reshape<Geometry::groups, width>(values));
  };
  const Groups values{hlo::untyped::reshape(x.value(), Groups::type().shape)};
  const Groups scale = of_channels(gamma), shift = of_channels(beta);
  Groups normalized = values;
  using Elements = TracedElements<const Groups>;
  constexpr TracedThreads<2, 4> group;
  const auto statistics = statistics_of_group(group, Elements{values}, Geometry::group_size, epsilon);
  normalize_group<Groups>(group, Elements{values}, statistics, Elements{scale}, Elements{shift},
                          TracedElements<Groups>{normalized});
  return X{hlo::untyped::reshape(normalized.value(), X::type().shape)};
}

}  // namespace detail

template <std::size_t Groups, class Options>
struct Lowering<GroupNormalization<Groups, Options>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters& parameters, State&) {
    return detail::group_normalized<typename Bound::Geometry>(x, std::get<0>(parameters), std::get<1>(parameters),
                                                              Options::epsilon);
  }
};

template <class Options>
struct Lowering<LayerNormalization<Options>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters& parameters, State&) {
    return detail::group_normalized<typename Bound::Geometry>(x, std::get<0>(parameters), std::get<1>(parameters),
                                                              Options::epsilon);
  }
};

}  // namespace dist::nn
