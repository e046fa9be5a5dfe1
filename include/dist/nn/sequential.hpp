#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include <dist/core/random.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/input.hpp>
#include <dist/nn/parameter.hpp>

namespace dist::nn {

namespace detail {

template <class T>
inline constexpr bool is_input = false;
template <std::size_t... Extents>
inline constexpr bool is_input<Input<Extents...>> = true;

template <class First, class Rest>
struct Prepend;
template <class First, class... Rest>
struct Prepend<First, std::tuple<Rest...>> {
  using Type = std::tuple<First, Rest...>;
};

/// The layers in their places, each on what the one before puts out, as a std::tuple.
template <class In, class... Layers>
struct Place {
  using Type = std::tuple<>;
};
template <class In, class First, class... Rest>
struct Place<In, First, Rest...> {
  using Placed = typename First::template On<In>;
  using Type = typename Prepend<Placed, typename Place<typename Placed::Output, Rest...>::Type>::Type;
};

template <class First, class... Layers>
struct PlaceAll {
  using Input = StaticShape<1>;
  using Type = std::tuple<>;
};
template <std::size_t... Extents, class... Layers>
struct PlaceAll<Input<Extents...>, Layers...> {
  using Input = StaticShape<Extents...>;
  using Type = typename Place<Input, Layers...>::Type;
};

}  // namespace detail

/// A network as a type: an Input and the layers behind it, all shapes known at compile time.
///
/// It has no state. `Network` gives it parameters on a strategy; here is what follows from the type alone.
/// Layers are counted from 0, without the Input.
template <class First, class... Layers>
struct Sequential {
  static_assert(detail::is_input<First>,
                "nn::Sequential must start with nn::Input<...>: the shape of one row of its input, without the batch");

 private:
  using Places = detail::PlaceAll<First, Layers...>;

 public:
  static constexpr std::size_t layer_count = std::tuple_size_v<typename Places::Type>;

  template <std::size_t Index>
  using Layer = std::tuple_element_t<Index, typename Places::Type>;

  /// The StaticShape of one row of the input, and of what layer `Index` puts out.
  using InputShape = typename Places::Input;
  template <std::size_t Index>
  using Output = typename Layer<Index>::Output;

 private:
  template <std::size_t... Index>
  static constexpr auto each_layer(auto&& visit, std::index_sequence<Index...>) {
    (visit.template operator()<Index>(), ...);
  }
  /// Calls `visit.operator()<Index>()` for each layer in order.
  static constexpr void for_each_layer(auto&& visit) { each_layer(visit, std::make_index_sequence<layer_count>{}); }

  template <class Type>
  struct OutputOf {
    using Shape = InputShape;
  };
  template <class... Placed>
    requires(sizeof...(Placed) > 0)
  struct OutputOf<std::tuple<Placed...>> {
    using Shape = typename std::tuple_element_t<sizeof...(Placed) - 1, std::tuple<Placed...>>::Output;
  };

 public:
  using OutputShape = typename OutputOf<typename Places::Type>::Shape;

  /// Where the parameters of a layer start in `parameters`; for `layer_count`, how many there are.
  static constexpr std::array<std::size_t, layer_count + 1> first_parameter = [] {
    std::array<std::size_t, layer_count + 1> first{};
    for_each_layer([&]<std::size_t Index>() { first[Index + 1] = first[Index] + Layer<Index>::parameters.size(); });
    return first;
  }();

  /// Every parameter, in the order of the layers.
  static constexpr std::array<Parameter, first_parameter[layer_count]> parameters = [] {
    std::array<Parameter, first_parameter[layer_count]> all{};
    std::array<std::string_view, layer_count + 1> names{};
    std::size_t count = 0;
    std::size_t offset = 0;
    for_each_layer([&]<std::size_t Index>() {
      names[Index] = Layer<Index>::name;
      std::size_t ordinal = 0;
      for (std::size_t before = 0; before != Index; ++before)
        if (names[before] == names[Index]) ++ordinal;
      for (const ParameterSpec& spec : Layer<Index>::parameters) {
        all[count++] = Parameter{names[Index], ordinal, spec.name, spec.shape, offset};
        offset += padded(spec.shape.elements());
      }
    });
    return all;
  }();

  /// Elements of all parameters, and the elements that hold them with padding.
  static constexpr std::size_t parameter_count = [] {
    std::size_t count = 0;
    for (const Parameter& parameter : parameters) count += parameter.shape.elements();
    return count;
  }();
  static constexpr std::size_t padded_count = [] {
    std::size_t count = 0;
    for (const Parameter& parameter : parameters) count += padded(parameter.shape.elements());
    return count;
  }();

  /// Gives the `padded_count` elements of `all` their first values. The same seed gives the same values
  /// everywhere.
  template <class T>
  static void initialize(TensorView<T> all, std::uint64_t seed) {
    for_each_layer([&]<std::size_t Index>() { initialize_layer<Index>(all, seed, of_layer<Index>()); });
  }

  /// The parameters of one layer, among `all` parameters of a network.
  template <std::size_t Index, class T>
  [[nodiscard]] static auto layer_parameters(T* all) {
    ParameterViews<T, Layer<Index>::parameters.size()> views;
    for (std::size_t which = 0; which < views.size(); ++which) {
      const Parameter& parameter = parameters[first_parameter[Index] + which];
      views[which] = TensorView<T>{all + parameter.offset, parameter.shape};
    }
    return views;
  }

 private:
  template <std::size_t Index>
  [[nodiscard]] static constexpr auto of_layer() {
    return std::make_index_sequence<Layer<Index>::parameters.size()>{};
  }
  template <std::size_t Index, class T, std::size_t... Which>
  static void initialize_layer([[maybe_unused]] TensorView<T> all, [[maybe_unused]] std::uint64_t seed,
                               std::index_sequence<Which...>) {
    // Streams of their own, so that weights share no numbers with a shuffle of the same seed.
    [[maybe_unused]] constexpr std::uint64_t streams = std::uint64_t{0x77656967} << 32;
    (Layer<Index>::template initialize<Which>(layer_parameters<Index>(all.data())[Which],
                                              RandomStream{seed, streams + first_parameter[Index] + Which}),
     ...);
  }
};

}  // namespace dist::nn
