/// Layers that normalise parts of single rows, in programs for XLA.
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/reduce_op.hpp>
#include <dist/hlo/collectives.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/hlo/rows.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/group_normalization.hpp>

namespace dist::nn {

/// The rows that count are those of the pass: what the statistics are of. A mean is taken away before squares are summed up,
/// as sums of squares alone would lose the digits of float.
template <class Statistics, class Options>
struct Lowering<BatchNormalization<Statistics, Options>> {
  static constexpr bool is_synchronized = std::same_as<Statistics, SynchronizedStatistics>;
  static_assert(is_synchronized || std::same_as<Statistics, PerReplicaStatistics>,
                "nn::BatchNormalization in a program takes nn::PerReplicaStatistics or nn::SynchronizedStatistics");

  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static X forward(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
    using Channels = std::remove_cvref_t<std::tuple_element_t<0, State>>;
    using S = typename Channels::Element;
    using Number = hlo::Traced<S>;
    using Values = typename X::template With<S>;
    const auto along = [](Channels each) { return hlo::broadcast<Values, Values::rank - 1>(each); };
    const Values values = x.template as<S>();
    const auto& [gamma, beta] = parameters;
    auto& [moving_mean, moving_variance] = state;
    Channels mean = moving_mean;
    Channels variance = moving_variance;
    if constexpr (Arguments::training) {
      constexpr auto of_row = static_cast<S>(Bound::Output::elements / Bound::channels);
      const Number count = combined(arguments.rows.template as<S>() * of_row);
      const Channels share{1 / hlo::max(count, 1)};  // without rows all sums are 0
      mean = combined(sum_of_channels(arguments, values)) * share;
      const Values centred = values - along(mean);
      variance = combined(sum_of_channels(arguments, centred * centred)) * share;
      const auto follow = [has_rows = count > 0](Channels& moving, Channels of_batch) {
        constexpr auto step = static_cast<S>(1 - Options::momentum);
        moving = hlo::select(hlo::broadcast<typename Channels::template With<bool>>(has_rows),
                             moving + (of_batch - moving) * step, moving);
      };
      follow(moving_mean, mean);
      if constexpr (Options::sample_variance) {
        follow(moving_variance, variance * Channels{count / hlo::max(count - 1, 1)});
      } else {
        follow(moving_variance, variance);
      }
    }
    const Channels scale = gamma.template as<S>() * rsqrt(variance + static_cast<S>(Options::epsilon));
    const Values y = (values - along(mean)) * along(scale) + along(beta.template as<S>());
    return y.template as<typename X::Element>();
  }

 private:
  /// Of all replicas where the statistics are.
  template <hlo::TracedArray Sums>
  [[nodiscard]] static Sums combined(Sums sums) {
    if constexpr (is_synchronized) {
      return hlo::all_reduce(sum, sums);
    } else {
      return sums;
    }
  }
  /// Of the rows that count.
  template <class Arguments, hlo::TracedArray Values>
  [[nodiscard]] static auto sum_of_channels(const Arguments& arguments, Values values) {
    const auto counts = hlo::broadcast<typename Values::template With<bool>, 0>(arguments.template counts<Values>());
    return [&]<std::size_t... Axis>(std::index_sequence<Axis...>) {
      return hlo::reduce<Axis...>(sum, hlo::select(counts, values, 0));
    }
    (std::make_index_sequence<Values::rank - 1>{});
  }
};

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
