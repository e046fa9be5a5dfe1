#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activations.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// What one replica needs to compute a network: its layers' operations with the back end's state, and the
/// memory between layers, which grows to the largest batch seen and is then used again.
///
/// Forward keeps every layer's output. Backward needs two gradients at a time, that of a layer's output and
/// that of its input, so all gradients share two buffers in turn.
template <class Net, class Backend, class T>
class Workspace {
 public:
  /// The output of the network for `x`, a batch with rows of the network's input shape. `x` and `parameters`
  /// must stay as they are until `backward`.
  [[nodiscard]] Activations<T> forward(std::span<const T> parameters, TensorView<const T> x) {
    x_ = {x.data(), Net::InputShape::shape().stacked(x.rows())};
    reserve(rows());
    if (rows() > 0) {
      [[maybe_unused]] const auto entered = state_.enter();
      each_forward(parameters.data(), std::make_index_sequence<layers>{});
    }
    return {output<layers>(), output_gradient<layers>()};
  }

  /// From the gradient that `forward` returned the place of to the gradients of all parameters, which are
  /// overwritten.
  void backward(std::span<const T> parameters, std::span<T> gradients) {
    if (rows() == 0) {
      std::fill(gradients.begin(), gradients.end(), T{0});
      return;
    }
    [[maybe_unused]] const auto entered = state_.enter();
    each_backward(parameters.data(), gradients.data(), std::make_index_sequence<layers>{});
  }

 private:
  static constexpr std::size_t layers = Net::layer_count;

  template <class Layer>
  struct OperationOf {
    struct Type {};
  };
  template <class Layer>
    requires(!Layer::is_view)
  struct OperationOf<Layer> {
    using Type = typename Layer::template Operation<Backend, T>;
  };
  template <std::size_t... Index>
  static auto operations_of(std::index_sequence<Index...>)
      -> std::tuple<typename OperationOf<typename Net::template Layer<Index>>::Type...>;
  using Operations = decltype(operations_of(std::make_index_sequence<layers>{}));

  /// The first layer with parameters: nothing before it needs a gradient.
  static constexpr std::size_t first_trained = [] {
    std::size_t first = 0;
    while (first < layers && Net::first_parameter[first + 1] == 0) ++first;
    return first;
  }();

  /// How many of the first `count` layers compute something. Their outputs are numbered in that order.
  template <std::size_t Count>
  static constexpr std::size_t computed = []<std::size_t... Index>(std::index_sequence<Index...>) {
    return (std::size_t{0} + ... + (Net::template Layer<Index>::is_view ? 0 : 1));
  }
  (std::make_index_sequence<Count>{});

  /// The StaticShape of one row behind the first `Count` layers.
  template <std::size_t Count>
  [[nodiscard]] static constexpr auto output_shape() {
    if constexpr (Count == 0) {
      return typename Net::InputShape{};
    } else {
      return typename Net::template Output<Count - 1>{};
    }
  }

  /// The output of the first `Count` layers: the batch itself where they only look at it differently.
  template <std::size_t Count>
  [[nodiscard]] TensorView<const T> output() {
    const Shape shape = decltype(output_shape<Count>())::shape().stacked(rows());
    if constexpr (computed<Count> == 0) {
      return {x_.data(), shape};
    } else {
      return {outputs_[computed<Count> - 1].data(), shape};
    }
  }
  template <std::size_t Count>
  [[nodiscard]] TensorView<T> output_gradient() {
    return {gradients_[computed<Count> % 2].data(), decltype(output_shape<Count>())::shape().stacked(rows())};
  }

  void reserve(std::size_t rows) {
    if (rows <= reserved_rows_) return;
    reserve_each(rows, std::make_index_sequence<layers>{});
    reserved_rows_ = rows;
  }
  template <std::size_t... Index>
  void reserve_each(std::size_t rows, std::index_sequence<Index...>) {
    std::array<std::size_t, 2> gradient_elements{};
    const auto reserve_one = [&]<std::size_t Layer>() {
      const std::size_t elements = rows * Net::template Output<Layer>::elements;
      if constexpr (!Net::template Layer<Layer>::is_view)
        outputs_[computed<Layer + 1> - 1] = AlignedBuffer<T>(elements);
      std::size_t& gradient = gradient_elements[computed<Layer + 1> % 2];
      gradient = std::max(gradient, elements);
    };
    (reserve_one.template operator()<Index>(), ...);
    for (std::size_t side = 0; side < 2; ++side) gradients_[side] = AlignedBuffer<T>(gradient_elements[side]);
  }

  template <std::size_t... Index>
  void each_forward(const T* parameters, std::index_sequence<Index...>) {
    (forward_one<Index>(parameters), ...);
  }
  template <std::size_t Index>
  void forward_one(const T* parameters) {
    if constexpr (!Net::template Layer<Index>::is_view) {
      const TensorView<T> y{outputs_[computed<Index>].data(), output<Index + 1>().shape()};
      std::get<Index>(operations_)
          .forward(state_, output<Index>(), Net::template layer_parameters<Index>(parameters), y);
    }
  }

  template <std::size_t... Index>
  void each_backward(const T* parameters, T* gradients, std::index_sequence<Index...>) {
    (backward_one<layers - 1 - Index>(parameters, gradients), ...);
  }
  template <std::size_t Index>
  void backward_one(const T* parameters, T* gradients) {
    if constexpr (!Net::template Layer<Index>::is_view && Index >= first_trained) {
      constexpr bool input_gradient = Index > first_trained;
      const TensorView<T> dx = input_gradient ? output_gradient<Index>() : TensorView<T>{};
      std::get<Index>(operations_)
          .template backward<input_gradient>(state_, output<Index>(), Net::template layer_parameters<Index>(parameters),
                                             output<Index + 1>(), output_gradient<Index + 1>(),
                                             Net::template layer_parameters<Index>(gradients), dx);
    }
  }

  [[nodiscard]] std::size_t rows() const noexcept { return x_.rows(); }

  typename Backend::State state_;
  Operations operations_;
  TensorView<const T> x_;
  std::array<AlignedBuffer<T>, computed<layers>> outputs_;
  std::array<AlignedBuffer<T>, 2> gradients_;
  std::size_t reserved_rows_ = 0;
};

}  // namespace dist::nn
