/// Layers in programs for XLA, except nn::Dense and image layers.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>
#include <dist/hlo/collectives.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/indexing.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/hlo/philox.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/hlo/rows.hpp>
#include <dist/nn/layer_random.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/bias.hpp>
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/learned_positions.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/multiply.hpp>
#include <dist/nn/layers/recomputed.hpp>
#include <dist/nn/layers/repeat.hpp>
#include <dist/nn/layers/rms_normalization.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/unembed.hpp>

namespace dist::nn {

/// The lowering of nn::BatchNormalization, with statistics of the valid rows. It subtracts the mean before it sums
/// squares, because float sums of plain squares lose digits.
template <class Statistics, class Options>
struct Lowering<BatchNormalization<Statistics, Options>> {
  /// True if the statistics include the rows of all replicas.
  static constexpr bool is_synchronized = std::same_as<Statistics, SynchronizedStatistics>;
  static_assert(
      is_synchronized || std::same_as<Statistics, PerReplicaStatistics>,
      "nn::BatchNormalization in an XLA program takes nn::PerReplicaStatistics or nn::SynchronizedStatistics");

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
  /// Sums over all replicas if statistics are synchronized.
  template <hlo::TracedArray Sums>
  [[nodiscard]] static Sums combined(Sums sums) {
    if constexpr (is_synchronized) {
      return hlo::all_reduce(sum, sums);
    } else {
      return sums;
    }
  }
  /// Sums the valid rows for each channel.
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

/// Computes (x - mean) / sqrt(variance + epsilon) per group, then applies gamma and beta per channel.
template <class Geometry, hlo::TracedArray X, hlo::TracedArray Channels>
[[nodiscard]] X group_normalized(X x, Channels gamma, Channels beta, double epsilon) {
  using T = typename X::Element;
  constexpr std::size_t width = Geometry::channels / Geometry::groups;
  constexpr std::size_t in_row = X::elements / (X::batch_axes == 0 ? X::extents[0] : 1);
  // A row's groups: at each pixel, the channels of one group after another.
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

/// The lowering of nn::GroupNormalization.
template <std::size_t Groups, class Options>
struct Lowering<GroupNormalization<Groups, Options>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters& parameters, State&) {
    return detail::group_normalized<typename Bound::Geometry>(x, std::get<0>(parameters), std::get<1>(parameters),
                                                              Options::epsilon);
  }
};

/// The lowering of nn::LayerNormalization.
template <class Options>
struct Lowering<LayerNormalization<Options>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters& parameters, State&) {
    return detail::group_normalized<typename Bound::Geometry>(x, std::get<0>(parameters), std::get<1>(parameters),
                                                              Options::epsilon);
  }
};

/// The lowering of nn::RMSNormalization.
template <class Options>
struct Lowering<RMSNormalization<Options>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static X forward(const Arguments&, X x, const Parameters& parameters, State&) {
    constexpr detail::TracedThreads<X::rank - 1> row;
    using Elements = detail::TracedElements<const X>;
    const X scale = hlo::broadcast<X, X::rank - 1>(std::get<0>(parameters));
    const auto factor = detail::inverse_root_mean_square(row, Elements{x}, Bound::channels, Options::epsilon);
    X y = x;
    detail::scale_row<X>(row, Elements{x}, factor, Elements{scale}, detail::TracedElements<X>{y});
    return y;
  }
};

namespace detail {

/// The outputs of a layer's branches.
template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
[[nodiscard]] auto branch_outputs(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
  const auto output = [&]<std::size_t Branch>() {
    using Net = typename Bound::template Net<Branch>;
    auto of_branch = tied<Bound::template first_state<Branch>, Net::state.size()>(state);
    return emit_forward<Net>(
        arguments, copied<Bound::template first_parameter<Branch>, Net::parameters.size()>(parameters), of_branch, x);
  };
  return [&]<std::size_t... Branch>(std::index_sequence<Branch...>) {
    return std::tuple{output.template operator()<Branch>()...};
  }
  (std::make_index_sequence<Bound::count>{});
}

/// Concatenates arrays along the last axis.
template <hlo::TracedArray First, hlo::TracedArray... Rest>
[[nodiscard]] auto side_by_side(First first, Rest... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    return first;
  } else {
    return hlo::concatenate<First::rank - 1>(first, side_by_side(rest...));
  }
}

}  // namespace detail

/// The lowering of nn::Add.
template <class... Branch>
struct Lowering<Add<Branch...>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
    return std::apply([](auto... outputs) { return (outputs + ...); },
                      detail::branch_outputs<Bound>(arguments, x, parameters, state));
  }
};

/// The lowering of nn::Multiply.
template <class... Branch>
struct Lowering<Multiply<Branch...>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
    return std::apply([](auto... outputs) { return (outputs * ...); },
                      detail::branch_outputs<Bound>(arguments, x, parameters, state));
  }
};

/// The lowering of nn::Concatenate.
template <class... Branch>
struct Lowering<Concatenate<Branch...>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
    return std::apply([](auto... outputs) { return detail::side_by_side(outputs...); },
                      detail::branch_outputs<Bound>(arguments, x, parameters, state));
  }
};

/// The lowering of nn::Recomputed: its layers. The compiler decides what is computed again.
template <class L>
struct Lowering<Recomputed<L>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
    return std::get<0>(detail::branch_outputs<Bound>(arguments, x, parameters, state));
  }
};

/// The lowering of nn::Repeat: the operations of all blocks.
template <std::size_t Count, class Block>
struct Lowering<Repeat<Count, Block>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static X forward(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
    using Net = typename Bound::Block;
    const auto add = [&]<std::size_t Number>() {
      const hlo::Scope scope{concat("block ", Number)};
      auto of_block = detail::tied<Number * Net::state.size(), Net::state.size()>(state);
      x = emit_forward<Net>(
          arguments, detail::copied<Number * Net::parameters.size(), Net::parameters.size()>(parameters), of_block, x);
    };
    [&]<std::size_t... Number>(std::index_sequence<Number...>) { (add.template operator()<Number>(), ...); }
    (std::make_index_sequence<Count>{});
    return x;
  }
};

namespace detail {

/// Returns the random stream of the next step, and advances a layer's state, like LayerRandom::next.
template <class S>
[[nodiscard]] hlo::RandomStream next_random(hlo::Traced<S, 6>& state) {
  using Number = hlo::RandomStream::Number;
  const auto words = state.template as<std::uint64_t>();
  const Number seed = [&]<std::size_t... Part>(std::index_sequence<Part...>) {
    return ((hlo::reshape<>(hlo::slice<0, Part, 1>(words)) << Number{16 * Part}) | ...);
  }
  (std::make_index_sequence<4>{});
  const Number step =
      hlo::reshape<>(hlo::slice<0, 4, 1>(words)) | (hlo::reshape<>(hlo::slice<0, 5, 1>(words)) << Number{16});
  const Number next = step + Number{1};
  const auto part = [](Number bits) { return hlo::reshape<1>((bits & Number{0xffff}).template as<S>()); };
  state = hlo::concatenate<0>(hlo::slice<0, 0, 4>(state), hlo::concatenate<0>(part(next), part(next >> Number{16})));
  return hlo::RandomStream{seed, step};
}

}  // namespace detail

/// The lowering of nn::Dropout.
template <std::size_t Numerator, std::size_t Denominator>
struct Lowering<Dropout<Numerator, Denominator>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters&, State& state) {
    if constexpr (!Arguments::training) {
      return x;
    } else {
      using T = typename X::Element;
      constexpr std::size_t in_row = Bound::Output::elements;
      using Numbers = hlo::Traced<std::uint64_t, X::extents[0], in_row>;
      const hlo::RandomStream random = detail::next_random(std::get<0>(state));
      const Numbers rows = hlo::iota<Numbers, 0>() + Numbers{arguments.first_row.template as<std::uint64_t>()};
      const Numbers element = rows * Numbers{in_row} + hlo::iota<Numbers, 1>();
      // Elements 2n and 2n + 1 share one draw of 64 bits.
      const Numbers shift = (element & Numbers{1}) * Numbers{32};
      const Numbers bits = (random.bits(element >> Numbers{1}) >> shift) & Numbers{0xffffffff};
      constexpr std::uint64_t dropped = (std::uint64_t{Numerator} << 32) / Denominator;
      using Kept = typename X::template With<bool>;
      const Kept kept{hlo::untyped::reshape((bits >= Numbers{dropped}).value(), Kept::type().shape)};
      constexpr T scale = static_cast<T>(static_cast<double>(Denominator) / (Denominator - Numerator));
      return hlo::select(kept, x * X{scale}, X{0});
    }
  }
};

namespace detail {

template <hlo::TracedArray X>
[[nodiscard]] X softmax(X x) {
  X y = x;
  softmax(TracedThreads<X::rank - 1>{}, TracedElements<const X>{x}, TracedElements<X>{y});
  return y;
}

}  // namespace detail

/// The lowering of nn::Softmax.
template <>
struct Lowering<Softmax> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters&, State&) {
    return detail::softmax(x);
  }
};

/// The lowering of nn::Embedding. Programs cannot throw, so an id out of range gives NaN.
template <std::size_t Words, std::size_t Width, class Initializer>
struct Lowering<Embedding<Words, Width, Initializer>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters& parameters, State&) {
    using T = typename X::Element;
    using Y = detail::TracedRows<X, typename Bound::Output>;
    const auto& [table] = parameters;
    const X ids = hlo::stop_gradient(x);
    const auto is_id = (ids >= X{0}) & (ids < X{static_cast<T>(Words)});
    const X known = hlo::select(is_id, X{0}, X{dist::detail::quiet_nan<T>});
    const Y rows = hlo::take(table, ids.template as<std::int32_t>());
    return rows + detail::along_last_axis<Y>(known);
  }
};

/// The lowering of nn::Unembed.
template <class Name>
struct Lowering<detail::UnembedOf<Name>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State&) {
    const auto& [table] = parameters;
    return arguments.of_factors(hlo::contract<X::rank - 1, 1>(arguments.factor(x), arguments.factor(table)));
  }
};

/// The lowering of nn::Bias.
template <class Initializer>
struct Lowering<Bias<Initializer>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static X forward(const Arguments&, X x, const Parameters& parameters, State&) {
    const auto& [bias] = parameters;
    return x + hlo::broadcast<X, X::rank - 1>(bias);
  }
};

/// The lowering of nn::LearnedPositions.
template <class Initializer>
struct Lowering<LearnedPositions<Initializer>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static X forward(const Arguments&, X x, const Parameters& parameters, State&) {
    const auto& [table] = parameters;
    return x + hlo::broadcast<X, 1, 2>(table);
  }
};

namespace detail {

/// Rotates columns of queries or keys [rows, length, heads, width] by RotaryPositions.
template <class Positions, hlo::TracedArray X>
[[nodiscard]] X rotated(X x) {
  if constexpr (std::is_same_v<Positions, NoPositions>) {
    return x;
  } else {
    constexpr std::size_t half = X::extents[3] / 2;
    const auto first = hlo::slice<3, 0, half>(x);
    const auto second = hlo::slice<3, half, half>(x);
    using Half = std::remove_const_t<decltype(first)>;
    using Exact = typename Half::template With<double>;
    const Exact angles =
        hlo::iota<Exact, 1>() * exp(hlo::iota<Exact, 3>() * Exact{-std::log(Positions::base) / double{half}});
    const Half cosines = cos(angles).template as<typename X::Element>();
    const Half sines = sin(angles).template as<typename X::Element>();
    return hlo::concatenate<3>(first * cosines - second * sines, second * cosines + first * sines);
  }
}

/// Adds the bias of product `Which` of attention along the last axes, if there is one.
template <std::size_t Which, std::size_t... Axes, class Arguments, hlo::TracedArray Y, class Parameters>
[[nodiscard]] Y with_bias(const Arguments& arguments, Y products, const Parameters& parameters) {
  if constexpr (std::tuple_size_v < Parameters >> 4)
    products = products + hlo::broadcast<Y, Axes...>(std::get<2 * Which + 1>(parameters));
  return arguments.of_factors(products);
}

/// Computes queries, keys or values: x · kernel + bias, [rows, length, heads, width].
template <std::size_t Which, class Arguments, hlo::TracedArray X, class Parameters>
[[nodiscard]] auto heads_of(const Arguments& arguments, X x, const Parameters& parameters) {
  const auto& kernel = std::get<Which * std::tuple_size_v<Parameters> / 4>(parameters);
  return with_bias<Which, 2, 3>(arguments, hlo::contract<2, 0>(arguments.factor(x), arguments.factor(kernel)),
                                parameters);
}

}  // namespace detail

/// The lowering of nn::MultiHeadAttention.
template <std::size_t Heads, std::size_t Width, class Options, class KernelInitializer, class BiasInitializer>
struct Lowering<MultiHeadAttention<Heads, Width, Options, KernelInitializer, BiasInitializer>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State&) {
    using hlo::Axes;
    using T = typename X::Element;
    constexpr std::size_t rows = X::extents[0], length = Bound::length, channels = Bound::channels;
    constexpr std::size_t key_heads = Bound::key_heads, shared = Heads / key_heads;
    using Positions = typename Options::Positions;
    using Weights = hlo::Traced<T, rows, key_heads, length, shared, length>;
    const auto queries = detail::rotated<Positions>(detail::heads_of<0>(arguments, x, parameters));
    const auto keys = detail::rotated<Positions>(detail::heads_of<1>(arguments, x, parameters));
    const auto values = detail::heads_of<2>(arguments, x, parameters);
    const auto& kernel = std::get<3 * std::tuple_size_v<Parameters> / 4>(parameters);
    Weights weights = hlo::contract<Axes<4>, Axes<3>, Axes<0, 2>, Axes<0, 2>>(
        hlo::reshape<rows, length, key_heads, shared, Width>(queries), keys);
    weights *= Weights{T{1} / std::sqrt(static_cast<T>(Width))};
    if constexpr (Options::is_causal) {
      using Places = typename Weights::template With<std::int32_t>;
      const auto is_past = hlo::iota<Places, 4>() <= hlo::iota<Places, 2>();
      weights = hlo::select(is_past, weights, Weights{-std::numeric_limits<T>::infinity()});
    }
    // [rows, key_heads, length, shared, width]; the next product merges the heads.
    const auto outputs = hlo::contract<Axes<4>, Axes<1>, Axes<0, 1>, Axes<0, 2>>(detail::softmax(weights), values);
    const X products = hlo::contract<Axes<1, 3, 4>, Axes<0, 1, 2>>(
        arguments.factor(outputs), hlo::reshape<key_heads, shared, Width, channels>(arguments.factor(kernel)));
    return detail::with_bias<3, 2>(arguments, products, parameters);
  }
};

}  // namespace dist::nn
