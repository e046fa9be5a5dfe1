#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/kernels/dense_bias_gradient.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layer_memory.hpp>
#include <dist/nn/outputs.hpp>

namespace dist::nn {

/// A pass through a network without layers that use the replica.
struct NoReplica {};

namespace detail {

template <class Operation>
concept EndsInActivation = requires {
  typename Operation::Activation;
};

/// The activation that a layer's operation ends in.
template <class Operation>
struct ActivationOf {
  using Type = Linear;
};
template <EndsInActivation Operation>
struct ActivationOf<Operation> {
  using Type = typename Operation::Activation;
};

/// The operations of layers one after another, and the memory between them, which grows to the largest batch seen and is
/// then used again. `Net` is a Sequential; the back end's state, and the queue for memory, are the caller's.
///
/// Forward keeps every layer's output. Backward needs two gradients at a time, that of a layer's output and
/// that of its input, so all gradients share two buffers in turn, except layers whose kernel gradient is not stored,
/// which keep that of their output until it is applied.
template <class Net, class Backend, class T, GradientStorage Storage = StoredGradients>
class Chain {
  using Where = typename Backend::Device::Space;
  using Queue = typename Backend::Device::Queue;
  using State = typename Backend::State;
  using Memory = LayerMemory<Backend, T>;
  template <class Element>
  using View = TensorView<Element, Where>;

 public:
  /// Whether the layers compute nothing: the output is the input.
  static constexpr bool is_identity = []<std::size_t... Index>(std::index_sequence<Index...>) {
    return (Net::template Layer<Index>::is_view && ...);
  }
  (std::make_index_sequence<Net::layer_count>{});

  /// The output for `x`, a batch with rows of the input shape. `x` and `parameters`, those of all layers, must stay as they
  /// are until `backward`. `pass` is a ForwardPass where a layer uses the replica. `before_use(elements)` is called before
  /// the parameters of a layer are read, from the first layer to the last.
  template <class Pass, class BeforeUse = NoOp>
  [[nodiscard]] Outputs<T, Where> forward(const Queue& queue, State& state, const T* parameters, View<const T> x,
                                          const Pass& pass, const BeforeUse& before_use = {}) {
    x_ = {x.data(), Net::InputShape::shape().stacked(x.rows())};
    reserve(queue, rows());
    if (rows() > 0) {
      each_forward<false>(state, parameters, pass, before_use, std::make_index_sequence<layers>{});
    } else if constexpr (Net::uses_replica) {
      each_forward<true>(state, parameters, pass, before_use, std::make_index_sequence<layers>{});
    }
    return {output<layers>(), output_gradient<layers>()};
  }

  /// Computes, from the gradient in the place that `forward` returned, the gradients of all parameters, which are
  /// overwritten, and with `InputGradient` that of the input. `replica` is the replica's context where a layer uses it.
  /// `when_ready(elements)` is called when a part of the gradients is final: of one layer or of several, from the last to
  /// the first.
  template <bool InputGradient, class Replica, class WhenReady>
  void backward(const Queue& queue, State& state, const T* parameters, T* gradients, const Replica& replica,
                WhenReady&& when_ready) {
    if constexpr (InputGradient) reserve_input_gradient(queue);
    if (rows() > 0) {
      each_backward<InputGradient, false>(state, parameters, gradients, replica, when_ready,
                                          std::make_index_sequence<layers>{});
    } else {
      if constexpr (Net::padded_count > 0) queue.fill(SpanIn<T, Where>{gradients, Net::padded_count}, T{0});
      if constexpr (Net::uses_replica) {
        each_backward<InputGradient, true>(state, parameters, gradients, replica, when_ready,
                                           std::make_index_sequence<layers>{});
      } else {
        when_ready(IndexRange{0, Net::padded_count});
      }
    }
  }

  /// What `backward` wrote with `InputGradient`.
  [[nodiscard]] View<const T> input_gradient() {
    if constexpr (is_identity) {
      return {output_gradient<layers>().data(), x_.shape()};
    } else {
      return {input_gradient_.data(), x_.shape()};
    }
  }

  /// The factors of a kernel gradient that is not stored, valid from `backward` to the next `forward`.
  template <std::size_t Index>
  [[nodiscard]] kernels::DenseBatch<T> dense_batch() {
    static_assert(!stores<Index>);
    return {output<Index>().data(), output_gradient<Index + 1>().data(), rows()};
  }
  [[nodiscard]] std::size_t rows() const noexcept { return x_.rows(); }

 private:
  static constexpr std::size_t layers = Net::layer_count;

  struct NoOperation {};
  template <class Layer>
  struct OperationOf {
    using Type = NoOperation;
  };
  template <class Layer>
    requires(!Layer::is_view)
  struct OperationOf<Layer> {
    using Type = typename Layer::template Operation<Backend, T>;
  };
  template <std::size_t... Index>
  static auto operations_of(std::index_sequence<Index...>)
      -> std::tuple<typename OperationOf<typename Net::template Layer<Index>>::Type..., NoOperation>;
  using Operations = decltype(operations_of(std::make_index_sequence<layers>{}));

  /// The operation of a layer; for the index `layers`, one that does nothing.
  template <std::size_t Index>
  using OperationAt = std::tuple_element_t<Index, Operations>;

  /// The first layer with parameters: nothing before it needs a gradient.
  static constexpr std::size_t first_trained = [] {
    std::size_t first = 0;
    while (first < layers && Net::first_parameter[first + 1] == 0) ++first;
    return first;
  }();

  /// Whether the gradients of all parameters of a layer are stored.
  template <std::size_t Index>
  static constexpr bool stores = Storage::template stores<typename Net::template Layer<Index>>;
  /// How many of the first `Count` layers do not store all gradients.
  template <std::size_t Count>
  static constexpr std::size_t not_stored = []<std::size_t... Index>(std::index_sequence<Index...>) {
    return (std::size_t{0} + ... + (stores<Index> ? 0 : 1));
  }
  (std::make_index_sequence<Count>{});

  /// The last of the first `Count` layers that computes something; `layers` if none does.
  template <std::size_t Count>
  static constexpr std::size_t last_computed = []<std::size_t... Index>(std::index_sequence<Index...>) {
    std::size_t last = layers;
    ((last = Net::template Layer<Index>::is_view ? last : Index), ...);
    return last;
  }
  (std::make_index_sequence<Count>{});

  /// The first layer after `Index` that computes something; `layers` if none does.
  template <std::size_t Index>
  static constexpr std::size_t next_computed = []<std::size_t... Other>(std::index_sequence<Other...>) {
    std::size_t next = layers;
    ((next = !Net::template Layer<Other>::is_view && Other > Index && next == layers ? Other : next), ...);
    return next;
  }
  (std::make_index_sequence<layers>{});

  template <std::size_t Index>
  static constexpr bool ends_in_activation = detail::EndsInActivation<OperationAt<Index>>;
  /// The activation that made a layer's input, Linear if none did.
  template <std::size_t Index>
  using ActivationBefore = typename detail::ActivationOf<OperationAt<last_computed<Index>>>::Type;
  /// Whether a layer applies the gradient of the activation before it in its own pass over dx.
  template <std::size_t Index>
  static constexpr bool fuses = [] {
    if constexpr (ends_in_activation<Index> && Index > first_trained)
      return OperationAt<Index>::template fuses<ActivationBefore<Index>>;
    return false;
  }();

  /// How many of the first `count` layers compute something. Their outputs are numbered in that order.
  template <std::size_t Count>
  static constexpr std::size_t computed = []<std::size_t... Index>(std::index_sequence<Index...>) {
    return (std::size_t{0} + ... + (Net::template Layer<Index>::is_view ? 0 : 1));
  }
  (std::make_index_sequence<Count>{});

  /// The StaticShape of one row after the first `Count` layers.
  template <std::size_t Count>
  [[nodiscard]] static constexpr auto output_shape() {
    if constexpr (Count == 0) {
      return typename Net::InputShape{};
    } else {
      return typename Net::template Output<Count - 1>{};
    }
  }

  /// The output of the first `Count` layers: the batch itself where they only change its shape.
  template <std::size_t Count>
  [[nodiscard]] View<const T> output() {
    const Shape shape = decltype(output_shape<Count>())::shape().stacked(rows());
    if constexpr (computed<Count> == 0) {
      return {x_.data(), shape};
    } else {
      return {outputs_[computed<Count> - 1].data(), shape};
    }
  }
  template <std::size_t Count>
  [[nodiscard]] View<T> output_gradient() {
    const Shape shape = decltype(output_shape<Count>())::shape().stacked(rows());
    if constexpr (constexpr std::size_t layer = last_computed<Count>; layer < layers) {
      if constexpr (!stores<layer>) return {kept_gradients_[not_stored<layer>].data(), shape};
    }
    return {gradients_[computed<Count> % 2].data(), shape};
  }

  /// Where a layer writes the gradient of its input.
  template <std::size_t Index>
  [[nodiscard]] View<T> layer_input_gradient() {
    if constexpr (computed<Index> == 0) {
      return {input_gradient_.data(), output<Index>().shape()};
    } else {
      return output_gradient<Index>();
    }
  }

  void reserve(const Queue& queue, std::size_t rows) {
    if (rows <= reserved_rows_) return;
    reserve_each(queue, rows, std::make_index_sequence<layers>{});
    reserved_rows_ = rows;
  }
  template <std::size_t... Index>
  void reserve_each(const Queue& queue, std::size_t rows, std::index_sequence<Index...>) {
    std::array<std::size_t, 2> gradient_elements{};
    [[maybe_unused]] const auto reserve_one = [&]<std::size_t Layer>() {
      const std::size_t elements = rows * Net::template Output<Layer>::elements;
      if constexpr (!Net::template Layer<Layer>::is_view)
        outputs_[computed<Layer + 1> - 1] = make_layer_memory<Backend, T>(queue, elements);
      if constexpr (!stores<Layer>) kept_gradients_[not_stored<Layer>] = make_layer_memory<Backend, T>(queue, elements);
      std::size_t& gradient = gradient_elements[computed<Layer + 1> % 2];
      gradient = std::max(gradient, elements);
    };
    if constexpr (is_identity) gradient_elements[0] = rows * Net::InputShape::elements;
    (reserve_one.template operator()<Index>(), ...);
    for (std::size_t side = 0; side < 2; ++side)
      gradients_[side] = make_layer_memory<Backend, T>(queue, gradient_elements[side]);
  }

  void reserve_input_gradient(const Queue& queue) {
    if constexpr (!is_identity) {
      if (rows() <= input_gradient_rows_) return;
      input_gradient_ = make_layer_memory<Backend, T>(queue, rows() * Net::InputShape::elements);
      input_gradient_rows_ = rows();
    }
  }

  /// Which layers take part: all that compute something, or, for a batch without rows, those that use the replica.
  template <std::size_t Index, bool WithoutRows>
  static constexpr bool takes_part = !Net::template Layer<Index>::is_view &&
                                     (!WithoutRows || detail::uses_replica<typename Net::template Layer<Index>>);

  template <bool WithoutRows, class Pass, class BeforeUse, std::size_t... Index>
  void each_forward([[maybe_unused]] State& state, [[maybe_unused]] const T* parameters,
                    [[maybe_unused]] const Pass& pass, [[maybe_unused]] const BeforeUse& before_use,
                    std::index_sequence<Index...>) {
    (forward_one<Index, WithoutRows>(state, parameters, pass, before_use), ...);
  }
  template <std::size_t Index, bool WithoutRows, class Pass, class BeforeUse>
  void forward_one([[maybe_unused]] State& state, [[maybe_unused]] const T* parameters,
                   [[maybe_unused]] const Pass& pass, [[maybe_unused]] const BeforeUse& before_use) {
    if constexpr (takes_part<Index, WithoutRows>) {
      if constexpr (elements_of<Index>.size() > 0) before_use(elements_of<Index>);
      const View<T> y{outputs_[computed<Index>].data(), output<Index + 1>().shape()};
      auto& operation = std::get<Index>(operations_);
      const auto layer_parameters = Net::template layer_parameters<Index, Where>(parameters);
      if constexpr (detail::uses_replica<typename Net::template Layer<Index>>) {
        operation.forward(pass.template layer_call<Net, Index>(), state, output<Index>(), layer_parameters, y);
      } else {
        operation.forward(state, output<Index>(), layer_parameters, y);
      }
    }
  }

  /// Where the parameters of a layer lie among those of all.
  template <std::size_t Index>
  static constexpr IndexRange elements_of = [] {
    if constexpr (Net::parameters.size() == 0) {
      return IndexRange{0, 0};
    } else {
      constexpr auto start = [](std::size_t parameter) {
        return parameter < Net::parameters.size() ? Net::parameters[parameter].offset : Net::padded_count;
      };
      return IndexRange{start(Net::first_parameter[Index]), start(Net::first_parameter[Index + 1])};
    }
  }();

  template <bool InputGradient, bool WithoutRows, class Replica, class WhenReady, std::size_t... Index>
  void each_backward(State& state, const T* parameters, T* gradients, const Replica& replica, WhenReady& when_ready,
                     std::index_sequence<Index...>) {
    [[maybe_unused]] const auto one = [&]<std::size_t Layer>() {
      backward_one<Layer, InputGradient, WithoutRows>(state, parameters, gradients, replica);
      if constexpr (elements_of<Layer>.size() > 0) when_ready(elements_of<Layer>);
    };
    (one.template operator()<layers - 1 - Index>(), ...);
  }
  template <std::size_t Index, bool InputGradient, bool WithoutRows, class Replica>
  void backward_one([[maybe_unused]] State& state, [[maybe_unused]] const T* parameters, [[maybe_unused]] T* gradients,
                    [[maybe_unused]] const Replica& replica) {
    if constexpr (takes_part<Index, WithoutRows> && (InputGradient || Index >= first_trained)) {
      constexpr bool input_gradient = InputGradient || Index > first_trained;
      const View<T> dx = input_gradient ? layer_input_gradient<Index>() : View<T>{};
      auto& operation = std::get<Index>(operations_);
      const auto layer_parameters = Net::template layer_parameters<Index, Where>(parameters);
      const auto layer_gradients = Net::template layer_parameters<Index, Where>(gradients);
      if constexpr (detail::uses_replica<typename Net::template Layer<Index>>) {
        operation.template backward<input_gradient>(replica, state, output<Index>(), layer_parameters,
                                                    output<Index + 1>(), output_gradient<Index + 1>(), layer_gradients,
                                                    dx);
      } else if constexpr (ends_in_activation<Index>) {
        using Pass = BackwardPass<input_gradient, stores<Index>, fuses<next_computed<Index>>,
                                  std::conditional_t<fuses<Index>, ActivationBefore<Index>, Linear>>;
        operation.template fused_backward<Pass>(state, output<Index>(), layer_parameters, output<Index + 1>(),
                                                output_gradient<Index + 1>(), layer_gradients, dx);
      } else {
        operation.template backward<input_gradient>(state, output<Index>(), layer_parameters, output<Index + 1>(),
                                                    output_gradient<Index + 1>(), layer_gradients, dx);
      }
    }
  }

  Operations operations_;
  View<const T> x_;
  std::array<Memory, computed<layers>> outputs_;
  std::array<Memory, 2> gradients_;
  std::array<Memory, not_stored<layers>> kept_gradients_;
  Memory input_gradient_;
  std::size_t reserved_rows_ = 0;
  std::size_t input_gradient_rows_ = 0;
};

}  // namespace detail
}  // namespace dist::nn
