#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

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

namespace dist::nn {

/// Each element attends to the whole sequence.
struct AttendToAll {
  /// False: no position is hidden.
  static constexpr bool is_causal = false;
};
/// Causal attention: each element attends to itself and the elements before it.
struct AttendToPast {
  /// True: later positions are hidden.
  static constexpr bool is_causal = true;
};

/// The sizes of an attention kernel; `width` is per head.
template <std::size_t Length, std::size_t Heads, std::size_t Width, class Reach>
struct AttentionGeometry {
  static constexpr std::size_t length = Length;        ///< elements of the sequence
  static constexpr std::size_t heads = Heads;          ///< independent heads
  static constexpr std::size_t width = Width;          ///< numbers of a query or key of a head
  static constexpr bool is_causal = Reach::is_causal;  ///< true if later positions are hidden
};

namespace detail {
template <class T>
struct AddTo {
  const T* from;
  T* to;
  DIST_HD void operator()(std::size_t i) const { to[i] += from[i]; }
};
}  // namespace detail

/// Multi-head self-attention of sequences, rows [length, channels]; queries, keys and values have `Width` columns per
/// head (Vaswani et al., "Attention is all you need", NeurIPS 2017). Keras' MultiHeadAttention with one input and
/// without dropout:
///
///   attention_output(softmax(query(x) · key(x)ᵀ / sqrt(width)) · value(x))
///
/// Kernels are [channels, heads, width] for query, key and value, and [heads, width, channels] for attention_output;
/// all have biases.
template <std::size_t Heads, std::size_t Width, class Reach = AttendToAll, class KernelInitializer = GlorotUniform>
struct MultiHeadAttention {
  static_assert(Heads > 0 && Width > 0, "nn::MultiHeadAttention needs at least one head of at least one column");

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
    /// The numbers of an element's query, in all heads together.
    static constexpr std::size_t columns = Heads * Width;
    static constexpr std::string_view name = "multi_head_attention";
    static constexpr std::array parameters{ParameterSpec{"query/kernel", Shape{channels, Heads, Width}},
                                           ParameterSpec{"query/bias", Shape{Heads, Width}},
                                           ParameterSpec{"key/kernel", Shape{channels, Heads, Width}},
                                           ParameterSpec{"key/bias", Shape{Heads, Width}},
                                           ParameterSpec{"value/kernel", Shape{channels, Heads, Width}},
                                           ParameterSpec{"value/bias", Shape{Heads, Width}},
                                           ParameterSpec{"attention_output/kernel", Shape{Heads, Width, channels}},
                                           ParameterSpec{"attention_output/bias", Shape{channels}}};
    static constexpr bool is_view = false;

    /// Keras' fans: a kernel's last two axes, with the first as a window.
    template <std::size_t Which, class T>
    static void initialize(TensorView<T> view, RandomStream stream) {
      using Initializer = std::conditional_t<Which % 2 == 0, KernelInitializer, Zeros>;
      constexpr Fans fans = Which < 6 ? Fans{channels * Heads, channels * Width} : Fans{columns, Heads * channels};
      Initializer::fill(view, fans, stream);
    }

    /// Selects the kernel.
    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template Attention<AttentionGeometry<length, Heads, Width, Reach>, T>;
    };
    /// Computes the layer.
    template <class Backend, class T>
    class Operation {
      using State = typename Backend::State;
      template <class Element>
      using View = ViewOn<Backend, Element>;
      template <class Element>
      using Views = ParameterViewsOn<Backend, Element, 8>;

     public:
      void forward(State& state, View<const T> x, const Views<const T>& weights, View<T> y) {
        const std::size_t elements = x.rows() * length;
        reserve(state, x.rows());
        const View<const T> in = matrix(x.data(), elements, channels);
        for (std::size_t which = 0; which < 3; ++which)
          products_[which].forward(state, in, kernel(weights, which), bias(weights, which), made(which, elements));
        attention_.forward(state, part(0, elements), part(1, elements), part(2, elements),
                           View<T>{attention_weights_.data(), Shape{x.rows(), Heads, length, length}},
                           made(3, elements));
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
        attention_.input_gradients(state, part(0, elements), part(1, elements), part(2, elements),
                                   View<const T>{attention_weights_.data(), Shape{x.rows(), Heads, length, length}},
                                   part(7, elements), made(4, elements), made(5, elements), made(6, elements));
        for (std::size_t which = 0; which < 3; ++which)
          products_[which].parameter_gradients(state, in, part(4 + which, elements), kernel(gradients, which),
                                               bias(gradients, which));
        if constexpr (InputGradient) {
          // dy serves as a buffer: it has the shape of dx, and is not read again.
          const View<T> sum = matrix(dx.data(), elements, channels);
          const View<T> other = matrix(dy.data(), elements, channels);
          products_[0].input_gradient(state, part(4, elements), kernel(weights, 0), sum);
          for (std::size_t which = 1; which < 3; ++which) {
            products_[which].input_gradient(state, part(4 + which, elements), kernel(weights, which), other);
            detail::queue_of<Backend>(state).for_each({0, sum.size()}, detail::AddTo<T>{other.data(), sum.data()});
          }
        }
      }

     private:
      template <class Element>
      [[nodiscard]] static View<Element> matrix(Element* data, std::size_t rows, std::size_t width) {
        return {data, Shape{rows, width}};
      }
      /// Kernels as matrices: [channels, heads * width], and [heads * width, channels] for attention_output.
      template <class Element>
      [[nodiscard]] static View<Element> kernel(const Views<Element>& all, std::size_t which) {
        return which < 3 ? matrix(all[2 * which].data(), channels, columns) : matrix(all[6].data(), columns, channels);
      }
      template <class Element>
      [[nodiscard]] static View<Element> bias(const Views<Element>& all, std::size_t which) {
        return {all[2 * which + 1].data(), Shape{which < 3 ? columns : channels}};
      }
      /// Queries, keys, values and outputs of the heads, followed by their gradients.
      [[nodiscard]] View<T> made(std::size_t which, std::size_t elements) {
        return matrix(parts_[which].data(), elements, columns);
      }
      [[nodiscard]] View<const T> part(std::size_t which, std::size_t elements) const {
        return matrix(static_cast<const T*>(parts_[which].data()), elements, columns);
      }

      void reserve(State& state, std::size_t rows) {
        if (rows <= reserved_rows_) return;
        const auto queue = detail::queue_of<Backend>(state);
        for (auto& part : parts_) part = detail::make_layer_memory<Backend, T>(queue, rows * length * columns);
        attention_weights_ = detail::make_layer_memory<Backend, T>(queue, rows * Heads * length * length);
        reserved_rows_ = rows;
      }

      std::array<typename Backend::template Dense<DenseGeometry<channels, columns, Linear>, T>, 3> products_;
      typename Backend::template Dense<DenseGeometry<columns, channels, Linear>, T> output_;
      detail::KernelFrom<Backend, Asked<T>> attention_;
      std::array<detail::LayerMemory<Backend, T>, 8> parts_;
      detail::LayerMemory<Backend, T> attention_weights_;
      std::size_t reserved_rows_ = 0;
    };
  };
};

}  // namespace dist::nn
