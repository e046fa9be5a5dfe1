#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn {

/// Attention without regard to positions in the sequence.
struct NoPositions {};
/// Rotary positions: in queries and keys, the columns c and c + width / 2 of a head are rotated by the angle position /
/// Base^(2 c / width), so that products depend on distances (Su et al., "RoFormer", 2021; columns as in transformers'
/// Llama).
template <std::size_t Base = 10000>
struct RotaryPositions {
  static constexpr double base = Base;  ///< 10,000 in most models; larger for longer sequences
};

/// The default options of attention: each element attends to the whole sequence. To change others, derive from this or
/// from AttendToPast.
struct AttendToAll {
  /// False: no position is hidden.
  static constexpr bool is_causal = false;
  /// Heads of keys and values, each for several heads of queries: grouped-query attention (Ainslie et al., "GQA",
  /// 2023). 0 for the number of heads of queries.
  static constexpr std::size_t key_heads = 0;
  /// Positions of the elements: NoPositions or RotaryPositions.
  using Positions = NoPositions;
};
/// Causal attention: each element attends to itself and the elements before it.
struct AttendToPast : AttendToAll {
  /// True: later positions are hidden.
  static constexpr bool is_causal = true;
};

/// The sizes of an attention kernel; `Width` is per head.
template <std::size_t Length, std::size_t Heads, std::size_t Width, class Options>
struct AttentionGeometry {
  /// The sizes for kernels.
  static constexpr AttentionSizes sizes{Length, Heads, Options::key_heads == 0 ? Heads : Options::key_heads, Width,
                                        Options::is_causal};
};

namespace detail {
/// Sets cosines and sines [length, width / 2, 2] of RotaryPositions.
template <class T>
struct RotationsOf {
  T* rotations;
  std::size_t half;
  double base;
  DIST_HD void operator()(std::size_t i) const {
    using std::cos, std::pow, std::sin;
    const auto column = static_cast<double>(i % half);
    const double angle = static_cast<double>(i / half) * pow(base, -column / static_cast<double>(half));
    rotations[2 * i] = static_cast<T>(cos(angle));
    rotations[2 * i + 1] = static_cast<T>(sin(angle));
  }
};
/// Rotates columns of sequences [length, columns] by RotaryPositions, or back if `direction` is -1.
template <class T>
struct Rotate {
  const T* rotations;
  T* values;
  std::size_t length, columns, half;
  T direction;
  DIST_HD void operator()(std::size_t i) const {
    const std::size_t pairs = columns / 2;
    const std::size_t pair = i % pairs;
    const T* const rotation = rotations + 2 * (i / pairs % length * half + pair % half);
    T& first = values[i / pairs * columns + pair / half * 2 * half + pair % half];
    T& second = (&first)[half];
    const T x = first;
    const T sine = direction * rotation[1];
    first = x * rotation[0] - second * sine;
    second = second * rotation[0] + x * sine;
  }
};
}  // namespace detail

/// Multi-head self-attention of sequences, rows [length, channels]; queries, keys and values have `Width` columns per
/// head (Vaswani et al., "Attention is all you need", NeurIPS 2017). Keras' MultiHeadAttention with one input and
/// without dropout:
///
///   attention_output(softmax(query(x) · key(x)ᵀ / sqrt(width)) · value(x))
///
/// Kernels are [channels, heads, width] for query, key and value, and [heads, width, channels] for attention_output;
/// all have biases, unless the bias initialiser is nn::NoBias. `Options` has the members of AttendToAll. With
/// `key_heads` it is Keras' GroupQueryAttention: kernels of key and value are [channels, key_heads, width], and head h
/// of the queries uses head h / (heads / key_heads).
template <std::size_t Heads, std::size_t Width, class Options = AttendToAll, class KernelInitializer = GlorotUniform,
          class BiasInitializer = Zeros>
struct MultiHeadAttention {
  static_assert(Heads > 0 && Width > 0, "nn::MultiHeadAttention needs at least one head of at least one column");
  static_assert(Heads % (Options::key_heads == 0 ? 1 : Options::key_heads) == 0,
                "nn::MultiHeadAttention needs a multiple of its key_heads as heads, because each head of keys serves "
                "equally many heads of queries");
  /// True if queries and keys are rotated by their positions.
  static constexpr bool is_rotary = !std::is_same_v<typename Options::Positions, NoPositions>;
  static_assert(!is_rotary || Width % 2 == 0,
                "nn::RotaryPositions rotate pairs of columns: give nn::MultiHeadAttention heads of an even width");

  /// The bound layer.
  template <class In>
  struct On {
    static_assert(In::rank == 2,
                  "nn::MultiHeadAttention takes rows [length, channels], but its input has a different number of axes: "
                  "put nn::Reshape or nn::Embedding before it");
    // Prevents further errors after a failed assertion.
    /// The StaticShape of an input row; another shape after a failed assertion.
    using Sequence = std::conditional_t<In::rank == 2, In, StaticShape<1, 1>>;
    using Layer = MultiHeadAttention;
    using Output = Sequence;
    /// The number of elements of the sequence.
    static constexpr std::size_t length = Sequence::template extent<0>;
    /// The number of channels of an element.
    static constexpr std::size_t channels = Sequence::template extent<1>;
    using Geometry = AttentionGeometry<length, Heads, Width, Options>;
    /// The heads of keys and values.
    static constexpr std::size_t key_heads = Geometry::sizes.key_heads;
    /// The numbers of an element's query, in all heads together.
    static constexpr std::size_t columns = Geometry::sizes.columns();
    /// The numbers of an element's key, in all heads of keys together.
    static constexpr std::size_t key_columns = Geometry::sizes.key_columns();
    static constexpr std::string_view name = "multi_head_attention";
    /// True if the four products have biases.
    static constexpr bool has_bias = detail::has_bias<BiasInitializer>;

   private:
    static constexpr std::array with_biases{ParameterSpec{"query/kernel", Shape{channels, Heads, Width}},
                                            ParameterSpec{"query/bias", Shape{Heads, Width}},
                                            ParameterSpec{"key/kernel", Shape{channels, key_heads, Width}},
                                            ParameterSpec{"key/bias", Shape{key_heads, Width}},
                                            ParameterSpec{"value/kernel", Shape{channels, key_heads, Width}},
                                            ParameterSpec{"value/bias", Shape{key_heads, Width}},
                                            ParameterSpec{"attention_output/kernel", Shape{Heads, Width, channels}},
                                            ParameterSpec{"attention_output/bias", Shape{channels}}};
    /// From the parameter of one product to the next product's.
    static constexpr std::size_t stride = has_bias ? 2 : 1;

   public:
    static constexpr auto parameters = [] {
      std::array<ParameterSpec, 4 * stride> specs{};
      for (std::size_t which = 0; which < specs.size(); ++which) specs[which] = with_biases[which * 2 / stride];
      return specs;
    }();
    static constexpr bool is_view = false;

    /// Keras' fans: a kernel's last two axes, with the first as a window.
    template <std::size_t Which, class T>
    static void initialize(TensorView<T> view, RandomStream stream) {
      using Initializer = std::conditional_t<Which % stride == 0, KernelInitializer, BiasInitializer>;
      constexpr std::size_t product = Which / stride;
      constexpr std::size_t heads_of_kernel = product == 0 ? Heads : key_heads;
      constexpr Fans fans =
          product < 3 ? Fans{channels * heads_of_kernel, channels * Width} : Fans{columns, Heads * channels};
      Initializer::fill(view, fans, stream);
    }

    /// Selects the kernel.
    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template Attention<Geometry, T>;
    };
    /// Computes the layer.
    template <class Backend, class T>
    class Operation {
      using State = typename Backend::State;
      template <class Element>
      using View = ViewOn<Backend, Element>;
      template <class Element>
      using Views = ParameterViewsOn<Backend, Element, 4 * stride>;

     public:
      void forward(State& state, View<const T> x, const Views<const T>& weights, View<T> y) {
        const std::size_t elements = x.rows() * length;
        reserve(state, x.rows());
        const View<const T> in = matrix(x.data(), elements, channels);
        for_each_product([&](auto& product, std::size_t which) {
          product.forward(state, in, kernel(weights, which), bias(weights, which), made(which, elements));
        });
        rotate(state, {0, 1}, elements, 1);
        attention_.forward(state, part(0, elements), part(1, elements), part(2, elements), made(3, elements));
        output_.forward(state, part(3, elements), kernel(weights, 3), bias(weights, 3),
                        matrix(y.data(), elements, channels));
      }

      template <bool InputGradient>
      void backward(State& state, View<const T> x, const Views<const T>& weights, View<const T>, View<T> dy,
                    const Views<T>& gradients, View<T> dx) {
        const std::size_t elements = x.rows() * length;
        const View<const T> in = matrix(x.data(), elements, channels);
        const View<const T> slopes = matrix(static_cast<const T*>(dy.data()), elements, channels);
        output_.parameter_gradients(state, part(3, elements), slopes, kernel(gradients, 3), bias(gradients, 3));
        output_.input_gradient(state, slopes, kernel(weights, 3), made(7, elements));
        attention_.input_gradients(state, part(0, elements), part(1, elements), part(2, elements), part(3, elements),
                                   part(7, elements), made(4, elements), made(5, elements), made(6, elements));
        rotate(state, {4, 5}, elements, -1);
        for_each_product([&](auto& product, std::size_t which) {
          product.parameter_gradients(state, in, part(4 + which, elements), kernel(gradients, which),
                                      bias(gradients, which));
        });
        if constexpr (InputGradient) {
          // dy serves as a buffer: it has the shape of dx, and is not read again.
          const View<T> sum = matrix(dx.data(), elements, channels);
          const View<T> other = matrix(dy.data(), elements, channels);
          for_each_product([&](auto& product, std::size_t which) {
            product.input_gradient(state, part(4 + which, elements), kernel(weights, which), which == 0 ? sum : other);
            if (which > 0)
              detail::queue_of<Backend>(state).for_each({0, sum.size()}, detail::AddTo<T>{other.data(), sum.data()});
          });
        }
      }

      void swap_scratch(Operation& other) {
        for (std::size_t which = 4; which < parts_.size(); ++which) std::swap(parts_[which], other.parts_[which]);
        std::swap(gradient_rows_, other.gradient_rows_);
      }

     private:
      template <class Element>
      [[nodiscard]] static View<Element> matrix(Element* data, std::size_t rows, std::size_t width) {
        return {data, Shape{rows, width}};
      }
      /// Kernels as matrices: [channels, heads * width], and [heads * width, channels] for attention_output.
      template <class Element>
      [[nodiscard]] static View<Element> kernel(const Views<Element>& all, std::size_t which) {
        Element* const data = all[stride * which].data();
        return which < 3 ? matrix(data, channels, columns_of(which)) : matrix(data, columns, channels);
      }
      template <class Element>
      [[nodiscard]] static View<Element> bias(const Views<Element>& all, std::size_t which) {
        if constexpr (has_bias)
          return {all[stride * which + 1].data(), Shape{which < 3 ? columns_of(which) : channels}};
        else
          return {};
      }
      /// The columns of queries, keys, values and outputs of the heads, and of their gradients.
      [[nodiscard]] static constexpr std::size_t columns_of(std::size_t which) {
        return which % 4 == 1 || which % 4 == 2 ? key_columns : columns;
      }
      /// Queries, keys, values and outputs of the heads, followed by their gradients.
      [[nodiscard]] View<T> made(std::size_t which, std::size_t elements) {
        return matrix(parts_[which].data(), elements, columns_of(which));
      }
      [[nodiscard]] View<const T> part(std::size_t which, std::size_t elements) const {
        return matrix(static_cast<const T*>(parts_[which].data()), elements, columns_of(which));
      }
      /// Calls `visit(product, which)` for queries, keys and values.
      template <class Visit>
      void for_each_product(const Visit& visit) {
        visit(query_, 0);
        visit(key_, 1);
        visit(value_, 2);
      }
      void rotate(State& state, const std::array<std::size_t, 2>& parts, std::size_t elements, T direction) {
        if constexpr (is_rotary) {
          for (const std::size_t which : parts) {
            const std::size_t of_row = columns_of(which);
            detail::queue_of<Backend>(state).for_each(
                {0, elements * of_row / 2},
                detail::Rotate<T>{rotations_.data(), parts_[which].data(), length, of_row, Width / 2, direction});
          }
        }
      }

      void reserve(State& state, std::size_t rows) {
        const auto queue = detail::queue_of<Backend>(state);
        const auto reserve_parts = [&](std::size_t first, std::size_t& reserved) {
          for (std::size_t which = first; which < first + 4 && rows > reserved; ++which)
            parts_[which] = detail::make_layer_memory<Backend, T>(queue, rows * length * columns_of(which));
          reserved = std::max(rows, reserved);
        };
        reserve_parts(0, reserved_rows_);
        reserve_parts(4, gradient_rows_);
        if constexpr (is_rotary) {
          if (rotations_.data() != nullptr) return;
          rotations_ = detail::make_layer_memory<Backend, T>(queue, length * Width);
          queue.for_each({0, length * Width / 2},
                         detail::RotationsOf<T>{rotations_.data(), Width / 2, Options::Positions::base});
        }
      }

      template <std::size_t Inputs, std::size_t Units>
      using Product = typename Backend::template Dense<DenseGeometry<Inputs, Units, Linear, has_bias>, T>;
      Product<channels, columns> query_;
      Product<channels, key_columns> key_;
      Product<channels, key_columns> value_;
      Product<columns, channels> output_;
      detail::KernelFrom<Backend, Asked<T>> attention_;
      std::array<detail::LayerMemory<Backend, T>, 8> parts_;
      detail::LayerMemory<Backend, T> rotations_;
      std::size_t reserved_rows_ = 0;
      std::size_t gradient_rows_ = 0;
    };
  };
};

}  // namespace dist::nn
