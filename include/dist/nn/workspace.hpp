#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/outputs.hpp>

namespace dist::nn {

/// Of a pass through a network without layers that use the replica.
struct NoReplica {};

/// What layers that use the replica get in a pass through the network: `state` is where that of all layers starts, on
/// this replica.
template <class Replica, ForwardMode Mode, class S>
struct ForwardPass {
  const Replica& replica;
  S* state;

  template <class Net, std::size_t Layer>
  [[nodiscard]] auto layer_call() const {
    const auto views = Net::template layer_state<Layer>(state);
    return LayerCall<Replica, Mode, S, std::tuple_size_v<decltype(views)>>{replica, views};
  }
};

/// What one replica needs to compute a network: its layers' operations with the back end's state, and the
/// memory between layers, which grows to the largest batch seen and is then used again.
///
/// Forward keeps every layer's output. Backward needs two gradients at a time, that of a layer's output and
/// that of its input, so all gradients share two buffers in turn.
template <class Net, class Backend, class T>
class Workspace {
 public:
  /// The output of the network for `x`, a batch with rows of the network's input shape. `x` and `parameters`
  /// must stay as they are until `backward`. `pass` is a ForwardPass where a layer uses the replica.
  template <class Pass = NoReplica>
  [[nodiscard]] Outputs<T> forward(std::span<const T> parameters, TensorView<const T> x, const Pass& pass = {}) {
    x_ = {x.data(), Net::InputShape::shape().stacked(x.rows())};
    reserve(rows());
    if (rows() > 0) {
      [[maybe_unused]] const auto entered = state_.enter();
      each_forward<false>(parameters.data(), pass, std::make_index_sequence<layers>{});
    } else if constexpr (Net::uses_replica) {
      [[maybe_unused]] const auto entered = state_.enter();
      each_forward<true>(parameters.data(), pass, std::make_index_sequence<layers>{});
    }
    return {output<layers>(), output_gradient<layers>()};
  }

  /// From the gradient that `forward` returned the place of to the gradients of all parameters, which are
  /// overwritten. `replica` is the replica's context where a layer uses it.
  template <class Replica = NoReplica>
  void backward(std::span<const T> parameters, std::span<T> gradients, const Replica& replica = {}) {
    if (rows() > 0) {
      [[maybe_unused]] const auto entered = state_.enter();
      each_backward<false>(parameters.data(), gradients.data(), replica, std::make_index_sequence<layers>{});
      return;
    }
    std::fill(gradients.begin(), gradients.end(), T{0});
    if constexpr (Net::uses_replica) {
      [[maybe_unused]] const auto entered = state_.enter();
      each_backward<true>(parameters.data(), gradients.data(), replica, std::make_index_sequence<layers>{});
    }
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

  /// Which layers take part: all that compute something, or, for a batch without rows, those that use the replica.
  template <std::size_t Index, bool WithoutRows>
  static constexpr bool takes_part = !Net::template Layer<Index>::is_view &&
                                     (!WithoutRows || detail::uses_replica<typename Net::template Layer<Index>>);

  template <bool WithoutRows, class Pass, std::size_t... Index>
  void each_forward(const T* parameters, const Pass& pass, std::index_sequence<Index...>) {
    (forward_one<Index, WithoutRows>(parameters, pass), ...);
  }
  template <std::size_t Index, bool WithoutRows, class Pass>
  void forward_one(const T* parameters, const Pass& pass) {
    if constexpr (takes_part<Index, WithoutRows>) {
      const TensorView<T> y{outputs_[computed<Index>].data(), output<Index + 1>().shape()};
      auto& operation = std::get<Index>(operations_);
      const auto layer_parameters = Net::template layer_parameters<Index>(parameters);
      if constexpr (detail::uses_replica<typename Net::template Layer<Index>>) {
        operation.forward(pass.template layer_call<Net, Index>(), state_, output<Index>(), layer_parameters, y);
      } else {
        operation.forward(state_, output<Index>(), layer_parameters, y);
      }
    }
  }

  template <bool WithoutRows, class Replica, std::size_t... Index>
  void each_backward(const T* parameters, T* gradients, const Replica& replica, std::index_sequence<Index...>) {
    (backward_one<layers - 1 - Index, WithoutRows>(parameters, gradients, replica), ...);
  }
  template <std::size_t Index, bool WithoutRows, class Replica>
  void backward_one(const T* parameters, T* gradients, const Replica& replica) {
    if constexpr (takes_part<Index, WithoutRows> && Index >= first_trained) {
      constexpr bool input_gradient = Index > first_trained;
      const TensorView<T> dx = input_gradient ? output_gradient<Index>() : TensorView<T>{};
      auto& operation = std::get<Index>(operations_);
      const auto layer_parameters = Net::template layer_parameters<Index>(parameters);
      const auto layer_gradients = Net::template layer_parameters<Index>(gradients);
      if constexpr (detail::uses_replica<typename Net::template Layer<Index>>) {
        operation.template backward<input_gradient>(replica, state_, output<Index>(), layer_parameters,
                                                    output<Index + 1>(), output_gradient<Index + 1>(), layer_gradients,
                                                    dx);
      } else {
        operation.template backward<input_gradient>(state_, output<Index>(), layer_parameters, output<Index + 1>(),
                                                    output_gradient<Index + 1>(), layer_gradients, dx);
      }
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
