#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layout.hpp>
#include <dist/nn/outputs.hpp>

namespace dist::nn {

namespace detail {

/// True for the first `count` rows.
template <std::size_t Rows>
[[nodiscard]] hlo::Traced<bool, Rows> first_rows(hlo::Traced<std::int32_t> count) {
  using Numbers = hlo::Traced<std::int32_t, Rows>;
  return hlo::iota<Numbers, 0>() < Numbers{count};
}

}  // namespace detail

/// Arguments for layers in a traced pass: whether it is training, which rows are valid, and whether the back end, if
/// given, RoundsFactors. A program has as many rows as the largest batch; smaller ones are padded at the end.
template <ForwardMode Mode, class BackendType = void>
struct TraceArguments {
  /// True in training, false in inference.
  static constexpr bool training = std::same_as<Mode, Training>;
  /// The number of valid rows, the first ones. The others may hold any finite number.
  hlo::Traced<std::int32_t> rows;
  /// The global batch's rows before this replica's, for layers with uses_global_rows.
  hlo::Traced<std::int32_t> first_row;

  /// True for each valid row of arrays of this type.
  template <hlo::TracedArray X>
  [[nodiscard]] hlo::Traced<bool, X::extents[0]> counts() const {
    return detail::first_rows<X::extents[0]>(rows);
  }

  /// An input or a kernel as a factor of products, rounded if the back end RoundsFactors.
  template <hlo::TracedArray X>
  [[nodiscard]] static X factor(X x) {
    if constexpr (RoundsFactors<BackendType>)
      return hlo::rounded<typename BackendType::Factor>(x);
    else
      return x;
  }
  /// Returns `y`, products of such factors with the bias added. If the back end RoundsFactors, its gradient is
  /// rounded, because it is a factor of the gradients of input and kernel.
  template <hlo::TracedArray Y>
  [[nodiscard]] static Y of_factors(Y y) {
    if constexpr (RoundsFactors<BackendType>)
      return hlo::with_gradient(y, y, [](Y gradient) { return factor(gradient); });
    else
      return y;
  }
};

namespace detail {

template <class T, std::size_t Rows, class Row>
struct TracedRowsOf;
template <class T, std::size_t Rows, std::size_t... Extents>
struct TracedRowsOf<T, Rows, StaticShape<Extents...>> {
  using Type = hlo::Traced<T, Rows, Extents...>;
};
/// A batch of `Row`s in a program, with as many rows as `X`.
template <hlo::TracedArray X, class Row>
using TracedRows = typename TracedRowsOf<typename X::Element, X::extents[0], Row>::Type;

}  // namespace detail

/// A layer's computation in a program for XLA, forward only; gradients are derived from the program. The
/// specialisation for a layer such as `Dense<10>` has a function
///
///   template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
///   static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State& state);
///
/// that returns rows of Bound::Output. `arguments` is a TraceArguments, `parameters` a std::tuple of arrays with the
/// shapes of Bound::parameters, and `state` one of references to arrays with the shapes of Bound::state, which may be
/// assigned. A layer with a kernel multiplies arguments.factor(x) and arguments.factor(kernel), and returns
/// arguments.of_factors(result). nn/hlo/ has the library's specialisations. A layer with `is_view` needs none.
template <class L>
struct Lowering {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X, const Parameters&, State&) {
    static_assert(dist::detail::always_false<L>,
                  "nn::Lowering is not defined for this layer: include its header in <dist/nn/hlo/>, or specialise "
                  "nn::Lowering for your own layer");
    return detail::TracedRows<X, typename Bound::Output>{0};
  }
};

namespace detail {

/// Copies of `Count` tuple elements from `First` on.
template <std::size_t First, std::size_t Count, class Tuple>
[[nodiscard]] auto copied([[maybe_unused]] const Tuple& all) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::make_tuple(std::get<First + I>(all)...); }
  (std::make_index_sequence<Count>{});
}
/// References to `Count` tuple elements from `First` on.
template <std::size_t First, std::size_t Count, class Tuple>
[[nodiscard]] auto tied([[maybe_unused]] Tuple& all) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::tie(std::get<First + I>(all)...); }
  (std::make_index_sequence<Count>{});
}

template <hlo::TracedArray X, std::size_t... Extents>
[[nodiscard]] auto reshaped_rows(X x, StaticShape<Extents...>) {
  return hlo::reshape<X::extents[0], Extents...>(x);
}

template <class Net, std::size_t Index, class Arguments, class Parameters, class State, hlo::TracedArray X>
[[nodiscard]] auto emit_layer(const Arguments& arguments, const Parameters& parameters, State& state, X x) {
  using Bound = typename Net::template Layer<Index>;
  if constexpr (Bound::is_view) {
    return reshaped_rows(x, typename Bound::Output{});
  } else {
    const hlo::Scope scope{concat("layer ", Index, " (", Bound::name, ")")};
    constexpr auto& kept = Layout<Kept, typename Net::Bound>::first;
    auto state_of_layer = tied<kept[Index], kept[Index + 1] - kept[Index]>(state);
    constexpr IndexRange used = Net::template used_parameters<Index>;
    const auto y = Lowering<typename Bound::Layer>::template forward<Bound>(
        arguments, x, copied<used.begin, used.size()>(parameters), state_of_layer);
    static_assert(std::same_as<std::remove_cv_t<decltype(y)>, TracedRows<X, typename Bound::Output>>,
                  "nn::Lowering<L>::forward must return one row of the layer's Output for each row of its input");
    return y;
  }
}

/// Emits the layers from `Index` on.
template <class Net, std::size_t Index, class Arguments, class Parameters, class State, hlo::TracedArray X>
[[nodiscard]] auto emit_layers([[maybe_unused]] const Arguments& arguments,
                               [[maybe_unused]] const Parameters& parameters, [[maybe_unused]] State& state, X x) {
  if constexpr (Index == Net::layer_count) {
    return x;
  } else {
    return emit_layers<Net, Index + 1>(arguments, parameters, state,
                                       emit_layer<Net, Index>(arguments, parameters, state, x));
  }
}

/// A std::tuple of traced arrays with the shapes of a layout.
template <class T, auto& layout>
[[nodiscard]] constexpr auto traced_tensors() {
  const auto traced = []<std::size_t Which>() {
    constexpr auto extents = [] {
      constexpr Shape shape = layout[Which].shape;
      std::array<std::size_t, shape.rank()> all{};
      std::copy(shape.extents().begin(), shape.extents().end(), all.begin());
      return all;
    }();
    return std::type_identity<hlo::detail::TracedWith<T, extents>>{};
  };
  return [&]<std::size_t... Which>(std::index_sequence<Which...>) {
    return std::type_identity<std::tuple<typename decltype(traced.template operator()<Which>())::type...>>{};
  }
  (std::make_index_sequence<layout.size()>{});
}

}  // namespace detail

/// The parameters of a network in a program.
template <class Net, class T = float>
using TracedParameters = typename decltype(detail::traced_tensors<T, Net::parameters>())::type;
/// The state of a network in a program.
template <class Net, class T = float>
using TracedState = typename decltype(detail::traced_tensors<T, Net::state>())::type;
/// An input batch of a network in a program.
template <class Net, class T = float>
using TracedInput = typename detail::TracedRowsOf<T, hlo::batch, typename Net::InputShape>::Type;
/// An output batch of a network in a program.
template <class Net, class T = float>
using TracedOutput = typename detail::TracedRowsOf<T, hlo::batch, typename Net::OutputShape>::Type;

/// Traces the Sequential `Net` for rows `x` of its input shape, and returns its output. `parameters` is a std::tuple
/// of all parameters, in order, and `state` one of all state arrays or references to them, which layers assign.
template <class Net, class Arguments, class Parameters, class State, hlo::TracedArray X>
[[nodiscard]] auto emit_forward(const Arguments& arguments, const Parameters& parameters, State& state, X x) {
  static_assert(
      std::tuple_size_v<Parameters> == Net::parameters.size() && std::tuple_size_v<State> == Net::state.size(),
      "nn::emit_forward needs a traced array for each parameter and each state of the network");
  static_assert(std::same_as<X, detail::TracedRows<X, typename Net::InputShape>>,
                "nn::emit_forward needs rows of the network's input shape");
  return detail::emit_layers<Net, 0>(arguments, parameters, state, x);
}

}  // namespace dist::nn
