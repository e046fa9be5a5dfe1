#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/index_range.hpp>
#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layer_random.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/layout.hpp>

namespace dist::nn {

template <class... Layers>
struct Sequential;

namespace detail {

/// A Sequential's layers as a std::tuple. Other types are not inspected, so that an invalid layer is reported once.
template <class L>
struct PartsOf {};
template <class... Layers>
struct PartsOf<Sequential<Layers...>> {
  using Type = std::tuple<Layers...>;
};
template <class L>
concept HasParts = requires {
  typename PartsOf<L>::Type;
};

template <template <class> class>
struct TemplateOfShape;
/// A block whose layers depend on the shape of its input: `Layers<In>`.
template <class L>
concept HasLayers = requires {
  typename TemplateOfShape<L::template Layers>;
};

template <class L>
concept HasOn = requires {
  typename TemplateOfShape<L::template On>;
};

/// The layers of a block on rows of this shape.
template <HasLayers Block, class In>
struct LayersOf {
  using Type = typename Block::template Layers<In>;
  static_assert(HasOn<Type> || HasParts<Type> || HasLayers<Type>,
                "Layers<In> of a block must be a layer or an nn::Sequential of layers: it is another type");
};

template <class T>
inline constexpr bool is_input = false;
template <std::size_t... Extents>
inline constexpr bool is_input<Input<Extents...>> = true;

/// The Input with rows of this shape.
template <class Shape>
struct InputOf;
template <std::size_t... Extents>
struct InputOf<StaticShape<Extents...>> {
  using Type = Input<Extents...>;
};
/// Layers on rows of this shape, as a network.
template <class Shape, class... Layers>
using NetworkOn = Sequential<typename InputOf<Shape>::Type, Layers...>;

/// True for a class with a failed static_assert, for which clang++ declares no members. It has no value either.
template <class T>
inline constexpr bool is_broken = std::is_default_constructible_v<T> && !requires {
  T{};
};

/// A placed layer that expands to a Group of layers.
template <class P>
concept HasGroup = requires {
  typename P::Group;
};
template <class P>
struct GroupOf {
  using Type = std::tuple<P>;
};
template <HasGroup P>
struct GroupOf<P> {
  using Type = typename P::Group;
};

template <class First, class Rest>
struct Prepend {
  using Type = typename Joined<typename GroupOf<First>::Type, Rest>::Type;
};

/// The layers named by the program.
template <class Layers>
struct NamedOf;
template <class... Layers>
struct NamedOf<std::tuple<Layers...>>
    : Joined<std::conditional_t<HasName<Layers>, std::tuple<Layers>, std::tuple<>>...> {};

template <template <class, class> class>
struct TemplateOfShapeAndLayers;
/// A layer that uses a parameter of an earlier layer: it has `OnAfter<In, Named>` in place of `On<In>`, where `Named` is
/// a std::tuple of the earlier placed layers with a name.
template <class L>
concept HasOnAfter = requires {
  typename TemplateOfShapeAndLayers<L::template OnAfter>;
};
template <class L, class In, class Named>
struct PlacedAfter {
  using Type = typename L::template On<In>;
};
template <HasOnAfter L, class In, class Named>
struct PlacedAfter<L, In, Named> {
  using Type = typename L::template OnAfter<In, Named>;
};

/// The placed layers as a std::tuple, each on the previous one's output. A Sequential expands to its layers. `Named` has
/// the earlier layers with a name.
template <class Named, class In, class... Layers>
struct BindLayers {
  using Type = std::tuple<>;
};
/// The placed layer `Bound`, and the layers after it.
template <class Named, class Bound, class... Rest>
struct BindAfter {
  using Type = std::tuple<>;
  static_assert(is_broken<Bound>,
                "a layer's On<In> lacks one of its members Output, name, parameters and is_view: see "
                "<dist/nn/layer.hpp>");
};
template <class Named, class Bound, class... Rest>
  requires(BoundLayer<Bound> || HasGroup<Bound>)
struct BindAfter<Named, Bound, Rest...> {
  using NextNamed = typename Joined<Named, typename NamedOf<typename GroupOf<Bound>::Type>::Type>::Type;
  using Type = typename Prepend<Bound, typename BindLayers<NextNamed, typename Bound::Output, Rest...>::Type>::Type;
};
template <class Named, class In, class First, class... Rest>
struct BindLayers<Named, In, First, Rest...> : BindAfter<Named, typename PlacedAfter<First, In, Named>::Type, Rest...> {
};
template <class Named, class In, class Parts, class... Rest>
struct BindParts;
template <class Named, class In, class... Part, class... Rest>
struct BindParts<Named, In, std::tuple<Part...>, Rest...> : BindLayers<Named, In, Part..., Rest...> {};
template <class Named, class In, HasParts First, class... Rest>
struct BindLayers<Named, In, First, Rest...> : BindParts<Named, In, typename PartsOf<First>::Type, Rest...> {};
template <class Named, class In, HasLayers First, class... Rest>
struct BindLayers<Named, In, First, Rest...> : BindLayers<Named, In, typename LayersOf<First, In>::Type, Rest...> {};
/// Reports another type.
template <class Named, class In, class Other, class... Rest>
  requires(!HasOn<Other> && !HasParts<Other> && !HasLayers<Other>)
struct BindLayers<Named, In, Other, Rest...> {
  using Type = std::tuple<>;
  static_assert(is_broken<Other>,
                "an argument of nn::Sequential is not a layer: a layer has a member template On<In>, and an activation "
                "such as nn::Relu is a layer as nn::Activate<nn::Relu>");
};

template <class... Layers>
struct BindAll {
  using Input = StaticShape<1>;
  using Type = std::tuple<>;
  static constexpr bool is_network = false;
};
template <std::size_t... Extents, class... Layers>
struct BindAll<Input<Extents...>, Layers...> {
  using Input = StaticShape<Extents...>;
  using Type = typename BindLayers<std::tuple<>, Input, Layers...>::Type;
  static constexpr bool is_network = true;
};

}  // namespace detail

/// Layers in sequence. With an Input first it is a network's type, with all shapes known at compile time. Without one
/// it is a part of a network: a branch of a layer such as Add, or layers that the network around it expands. Without
/// layers it is the identity.
///
/// A block whose layers depend on its input is a struct with a member template `Layers`: a layer or a Sequential for the
/// StaticShape of an input row. It takes the place of these layers:
///
///     struct FeedForward {
///       template <class In>
///       using Layers = nn::Sequential<nn::Dense<4 * In::last_extent, nn::Gelu>, nn::Dense<In::last_extent>>;
///     };
///
/// It has no state: `Network` adds parameters. Layers are counted from 0, without the Input.
template <class... Layers>
struct Sequential {
 private:
  using Binding = detail::BindAll<Layers...>;

  static constexpr std::size_t of_network(std::size_t number) {
    static_assert(
        Binding::is_network,
        "nn::Sequential must start with nn::Input<...>: the shape of one row of its input, without the batch");
    return number;
  }

 public:
  /// The placed layers, as a std::tuple.
  using Bound = typename Binding::Type;
  /// The number of placed layers, without nn::Input.
  static constexpr std::size_t layer_count =
      of_network(detail::Layout<detail::Learned, typename Binding::Type>::layers);

  /// A placed layer, by its position.
  template <std::size_t Index>
  using Layer = std::tuple_element_t<Index, typename Binding::Type>;

  /// StaticShapes of one row of the input, and of the output of layer `Index`.
  using InputShape = typename Binding::Input;
  /// The StaticShape of an output row of layer `Index`.
  template <std::size_t Index>
  using Output = typename Layer<Index>::Output;

 private:
  template <class Type>
  struct OfLayers {
    using Output = InputShape;
    static constexpr bool use_replica = false;
    static constexpr bool use_global_rows = false;
    static constexpr bool take_ids = false;
    static constexpr bool has_ties = false;
  };
  template <class... Bound>
    requires(sizeof...(Bound) > 0)
  struct OfLayers<std::tuple<Bound...>> {
    using Output = typename std::tuple_element_t<sizeof...(Bound) - 1, std::tuple<Bound...>>::Output;
    static constexpr bool use_replica = (detail::uses_replica<Bound> || ...);
    static constexpr bool use_global_rows = (detail::uses_global_rows<Bound> || ...);
    static constexpr bool has_ties = (detail::IsTied<Bound> || ...);
    static constexpr bool take_ids = [] {
      bool is_input = true, takes = false;  // `is_input`: the layers before are views
      ((takes = takes || (is_input && detail::takes_ids<Bound>), is_input = is_input && Bound::is_view), ...);
      return takes;
    }();
    static_assert(detail::Layout<detail::Learned, std::tuple<Bound...>>::names_differ,
                  "two layers of this network have the same name: give each nn::Named a name that no other layer has");
    static_assert(((detail::uses_replica<Bound> || detail::state_of<Bound>().size() == 0) && ...),
                  "a layer with state needs uses_replica = true: its Operation receives the state with the LayerCall");
    static_assert(
        ((detail::uses_replica<Bound> || !detail::uses_global_rows<Bound>)&&...),
        "a layer with uses_global_rows needs uses_replica = true: its Operation receives first_row with the LayerCall");
  };
  using Learned = detail::Layout<detail::Learned, typename Binding::Type>;
  using Kept = detail::Layout<detail::Kept, typename Binding::Type>;

  // Separate streams: weights share no numbers with a shuffle of the same seed.
  static constexpr std::uint64_t weight_streams = std::uint64_t{0x77656967} << 32;
  static constexpr std::uint64_t random_streams = std::uint64_t{0x72616e64} << 32;

 public:
  /// The StaticShape of an output row of the last layer.
  using OutputShape = typename OfLayers<typename Binding::Type>::Output;

  /// True if a layer communicates, or differs between training and inference.
  static constexpr bool uses_replica = OfLayers<typename Binding::Type>::use_replica;

  /// True if a layer uses the global batch's rows before a replica's.
  static constexpr bool uses_global_rows = OfLayers<typename Binding::Type>::use_global_rows;

  /// True if the input is ids, which have no gradient.
  static constexpr bool takes_ids = OfLayers<typename Binding::Type>::take_ids;

  /// First parameter of each layer in `parameters`; for `layer_count`, the total number.
  static constexpr auto& first_parameter = Learned::first;
  /// All parameters, in the order of the layers.
  static constexpr auto& parameters = Learned::tensors;
  /// Elements of all parameters, without and with padding.
  static constexpr std::size_t parameter_count = of_network(Learned::count);
  /// Elements of all parameters with padding.
  static constexpr std::size_t padded_count = Learned::padded_count;

  /// The layers' state, and its elements, without and with padding.
  static constexpr auto& state = Kept::tensors;
  /// Elements of the state of all layers, without padding.
  static constexpr std::size_t state_count = Kept::count;
  /// Elements of the state of all layers, with padding.
  static constexpr std::size_t padded_state_count = Kept::padded_count;

  /// Initialises the `padded_count` elements of `all`, equally for equal seeds. `first_stream` is the random stream of
  /// the first parameter; the others have the next ones.
  template <class T>
  static void initialize([[maybe_unused]] TensorView<T> all, [[maybe_unused]] std::uint64_t seed,
                         [[maybe_unused]] std::uint64_t first_stream = weight_streams) {
    [[maybe_unused]] std::size_t next = 0;
    [[maybe_unused]] const auto initialize_leaf = [&]<class Leaf>(std::type_identity<Leaf>) {
      if constexpr (detail::HasBlocks<Leaf>) {
        using Block = typename Leaf::Block;
        for (std::size_t block = 0; block < Leaf::blocks; ++block, next += Block::parameters.size())
          Block::initialize(TensorView<T>{all.data() + Learned::offset_of(next), Shape{Block::padded_count}}, seed,
                            first_stream + next);
      } else if constexpr (Leaf::parameters.size() > 0) {
        [&]<std::size_t... Which>(std::index_sequence<Which...>) {
          (Leaf::template initialize<Which>(
               TensorView<T>{all.data() + parameters[next + Which].offset, parameters[next + Which].shape},
               RandomStream{seed, first_stream + next + Which}),
           ...);
        }
        (std::make_index_sequence<Leaf::parameters.size()>{});
        next += Leaf::parameters.size();
      }
    };
    [&]<class... Leaves>(std::type_identity<std::tuple<Leaves...>>) {
      (initialize_leaf(std::type_identity<Leaves>{}), ...);
    }(std::type_identity<typename detail::AllLeaves<Bound>::Type>{});
  }
  /// Initialises the `padded_state_count` elements of `all`.
  template <class T>
  static void initialize_state(TensorView<T> all, [[maybe_unused]] std::uint64_t seed = 0) {
    std::size_t next = 0;
    [[maybe_unused]] const auto initialize_leaf = [&](const auto& specs) {
      for (const StateSpec& spec : specs) {
        const TensorView<T> view{all.data() + state[next].offset, spec.shape};
        if (spec.is_random) {
          LayerRandom::initialize(view, RandomStream{seed, random_streams}.bits(next));
        } else {
          for (T& element : view.elements()) element = static_cast<T>(spec.initial);
        }
        ++next;
      }
    };
    [&]<class... Leaves>(std::type_identity<std::tuple<Leaves...>>) {
      (initialize_leaf(detail::state_of<Leaves>()), ...);
    }(std::type_identity<typename detail::AllLeaves<Bound>::Type>{});
  }

  /// True if a layer uses a parameter of an earlier one.
  static constexpr bool has_ties = OfLayers<typename Binding::Type>::has_ties;

  /// The numbers of the parameters that layer `Index` uses: the layer's parameters, or one parameter of an earlier
  /// layer.
  template <std::size_t Index>
  static constexpr IndexRange used_parameters = [] {
    IndexRange used{first_parameter[Index], first_parameter[Index + 1]};
    if constexpr (detail::IsTied<Layer<Index>>) {
      using Source = typename Layer<Index>::TiedTo;
      used.begin = 0;
      while (parameters[used.begin].layer != Source::name || parameters[used.begin].ordinal != 0) ++used.begin;
      used.end = used.begin + 1;
    }
    return used;
  }();

  /// Returns the parameters that one layer uses, in array `all`, which is in `Where`.
  template <std::size_t Index, dist::MemorySpace Where = HostMemory, class T>
  [[nodiscard]] static auto layer_parameters(T* all) {
    if constexpr (detail::IsTied<Layer<Index>>) {
      constexpr Parameter tied = parameters[used_parameters<Index>.begin];
      return ParameterViews<T, 1, Where>{TensorView<T, Where>{all + tied.offset, tied.shape}};
    } else {
      return Learned::template of_layer<Index, Where>(all);
    }
  }
  /// Returns one layer's state in array `all`, which is in `Where`.
  template <std::size_t Index, dist::MemorySpace Where = HostMemory, class T>
  [[nodiscard]] static auto layer_state(T* all) {
    return Kept::template of_layer<Index, Where>(all);
  }
};

}  // namespace dist::nn
