/// The interface of the layers of a network.
///
/// A layer is an empty struct such as `Dense<128, Relu>`, independent of its input. `Layer::On<Input>`, with the
/// StaticShape of one input row, is the placed layer, whose properties are compile-time constants:
///
/// - `Output`: the StaticShape of one output row. A wrong `Input` fails here, in one static_assert.
/// - `name`: Keras' name of the layer, "dense".
/// - `Layer`: the layer before placement, for lookup by type.
/// - `parameters`: a std::array of ParameterSpec, possibly empty.
/// - `initialize<Which>(view, stream)`, if it has parameters: initialises parameter `Which`.
/// - `is_view`: true if output and input are the same elements in the same order. Then it needs no Operation.
/// - `Operation<Backend, T>`: the computation, one object per replica, which may keep state from `forward` to
///   `backward`:
///   - `forward(state, x, parameters, y)` writes all of `y`;
///   - `backward<input_gradient>(state, x, parameters, y, dy, gradients, dx)` overwrites all of `gradients`
///     and, if `input_gradient` is true, all of `dx`. It may change `dy`, which is not read afterwards
///     (except as described at BackwardPass).
///
/// All tensors have the batch as outermost axis, with at least one row, and are in the back end's memory
/// (`ViewOn<Backend, T>`). `x`, `y`, `dy` and `dx` never share memory. The old values of `y`, `gradients` and `dx` are
/// undefined: overwrite, do not add. `state` is the back end's (backend.hpp).
///
/// Only layers that do more than compute row by row have these members:
///
/// - `uses_replica`: true if the Operation communicates, or differs between training and inference. Its `forward` then
///   takes a LayerCall as first argument, its `backward` the replica context. Both run for empty batches, too, because
///   other replicas may wait in a collective.
/// - `uses_global_rows`: true if results depend on a row's number in the global batch, for example random numbers that
///   do not depend on the number of replicas (LayerRandom). Requires `uses_replica`; the LayerCall then has `first_row`
///   in training, which costs the network one collective call.
/// - `state`: a std::array of StateSpec: values kept between steps, without gradients. Requires `uses_replica`, because
///   the LayerCall contains them.
///
/// A layer of layers (Add, Concatenate) is one layer to the network around it. It has
///
/// - `Leaves`: a std::tuple of all placed layers inside. Their parameters and state are concatenated in this order, and
///   laid out by Layout.
///
/// A layer of equal blocks (Repeat) is one layer, too, with the parameters and the state of all blocks. It has
///
/// - `blocks`: the number of blocks;
/// - `Block`: one block, a Sequential with an Input. The tensors of the blocks lie one block after another.
///
/// Its Operation takes one view of all parameters with their padding, one of the gradients, and in its LayerCall one of
/// the state. Its `forward` takes a `FunctionRef<void(IndexRange)>` as last argument, and calls it before it reads
/// these elements of its parameters; its `backward` takes one that it calls when these gradients are final, from the
/// last to the first.
///
/// An Operation that ends in an activation may have two more members, to fuse two passes over memory:
///
/// - `Activation`: the type of the activation;
/// - `fused_backward<Pass>(…)` with the arguments of `backward`, `Pass` a BackwardPass. `fuses<Before>` is true if it
///   can include the gradient of this previous activation.
///
/// An Operation with parameters may have a form of `backward` that writes no parameter gradient, for
/// `nn::only_input_gradient`. Without it, the gradients are computed and discarded. The Operation has
///
/// - `skips_parameter_gradients`: true. It then has `backward<input_gradient, parameter_gradients>(…)`, or heeds
///   `stores_bias_gradient` in its `fused_backward`.
///
/// An Operation with memory that only `backward` uses may share it with the same layer in the other blocks of a Repeat.
/// It has
///
/// - `swap_scratch(other)`: exchanges this memory with the memory of another Operation. It is called before `forward`,
///   which may allocate the memory, and before `backward`.
///
/// An Operation may add its parameter gradients to the old values. The network then sets them to 0 before the layer's
/// `backward`, unless another layer that uses the same parameters has written gradients. The Operation has
///
/// - `adds_parameter_gradients`: true.
///
/// A layer whose input is ids instead of numbers has
///
/// - `takes_ids`: true. A network that starts with such a layer has no input gradient.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>

#include <dist/core/memory_space.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/outputs.hpp>

namespace dist::nn {

/// One trainable tensor of a layer.
struct ParameterSpec {
  std::string_view name;  ///< "kernel", "bias", "gamma" or "beta"
  Shape shape;            ///< as in Keras
};

/// One tensor of a layer's state, and its initial value.
struct StateSpec {
  std::string_view name;   ///< "moving_mean"
  Shape shape;             ///< as in Keras
  double initial = 0;      ///< of all elements
  bool is_random = false;  ///< true for a LayerRandom, whose seed is derived from the network's
};

/// The parameters of one layer, their gradients or its state, as arguments of its Operation.
template <class T, std::size_t Count, dist::MemorySpace Where = HostMemory>
using ParameterViews = std::array<TensorView<T, Where>, Count>;
/// ParameterViews in the memory of a back end's device.
template <class Backend, class T, std::size_t Count>
using ParameterViewsOn = ParameterViews<T, Count, typename Backend::Device::Space>;

/// The arguments of a pass for layers that use the replica. `state` is the start of all layers' state on this replica.
template <class Replica, ForwardMode Mode, class S, dist::MemorySpace Where = HostMemory>
struct ForwardPass;

/// The first argument of `forward` of a layer with `uses_replica`. `state` is the replica's copy of the layer's state;
/// `S` is const in inference.
template <class Replica, ForwardMode Mode, class S, std::size_t Count, dist::MemorySpace Where = HostMemory>
struct LayerCall {
  /// True in training, false in inference.
  static constexpr bool training = std::same_as<Mode, Training>;
  /// The context of the replica, for collectives.
  const Replica& replica;
  /// The replica's copy of the layer's state, one view per StateSpec.
  ParameterViews<S, Count, Where> state;
  /// The global batch's rows before this replica's, in training, if a layer uses_global_rows.
  std::size_t first_row = 0;

  /// Returns the pass through inner layers, whose state starts at `of_layers`.
  [[nodiscard]] ForwardPass<Replica, Mode, S, Where> pass(S* of_layers = nullptr) const {
    return {replica, of_layers, first_row};
  }
};

template <class Replica, ForwardMode Mode, class S, dist::MemorySpace Where>
struct ForwardPass {
  /// The context of the replica, for collectives.
  const Replica& replica;
  /// The state of all layers on this replica.
  S* state;
  /// The number of rows of the global batch before this replica's rows.
  std::size_t first_row = 0;

  /// Returns the argument for layer `Layer` of network `Net`.
  template <class Net, std::size_t Layer>
  [[nodiscard]] auto layer_call() const {
    const auto views = Net::template layer_state<Layer, Where>(state);
    return LayerCall<Replica, Mode, S, std::tuple_size_v<decltype(views)>, Where>{replica, views, first_row};
  }
};

/// A layer's tasks in the backward pass. If `InputGradient`, it writes `dx`: the gradient of its input or, unless
/// `BeforeFunction` is Linear, of that previous activation's operand. If `ActivationIsApplied`, dy is the gradient
/// before this layer's activation. Without `StoresKernelGradient`, it does not write the kernel gradient, and replaces
/// dy by the gradient before the activation, from which the kernel gradient can be computed. Without
/// `StoresBiasGradient`, it writes no gradient of a parameter.
template <bool InputGradient, bool StoresKernelGradient = true, bool ActivationIsApplied = false,
          class BeforeFunction = Linear, bool StoresBiasGradient = true>
struct BackwardPass {
  static_assert(StoresBiasGradient || !StoresKernelGradient);
  /// The activation whose gradient the layer includes; Linear for none.
  using Before = BeforeFunction;
  /// True if the layer writes the gradient of its input.
  static constexpr bool input_gradient = InputGradient;
  /// True if the layer writes the gradient of its kernel.
  static constexpr bool stores_kernel_gradient = StoresKernelGradient;
  /// False if the layer writes no gradient of a parameter.
  static constexpr bool stores_bias_gradient = StoresBiasGradient;
  /// True if `dy` is the gradient before the layer's activation.
  static constexpr bool activation_is_applied = ActivationIsApplied;
};

/// A placed layer.
template <class L>
concept BoundLayer = requires {
  typename L::Output;
  { L::name } -> std::convertible_to<std::string_view>;
  { L::parameters.size() } -> std::convertible_to<std::size_t>;
  { L::is_view } -> std::convertible_to<bool>;
};

namespace detail {

/// The parameters of a layer without parameters.
inline constexpr std::array<ParameterSpec, 0> no_parameters{};
/// The state of a layer without state.
inline constexpr std::array<StateSpec, 0> no_state{};

/// Optional constants of a layer, false by default.
template <class L>
inline constexpr bool uses_replica = requires {
  requires L::uses_replica;
};
template <class L>
inline constexpr bool uses_global_rows = requires {
  requires L::uses_global_rows;
};
template <class L>
inline constexpr bool takes_ids = requires {
  requires L::takes_ids;
};
template <class L>
concept HasState = requires {
  L::state;
};
/// A layer named by the program.
template <class L>
concept HasName = requires {
  requires L::is_named;
};
/// A layer that uses the only parameter of `TiedTo`, an earlier placed layer. The parameter's gradient is the sum of
/// both layers' gradients.
template <class L>
concept IsTied = requires {
  typename L::TiedTo;
};
template <class L>
concept HasLeaves = requires {
  typename L::Leaves;
};
/// An Operation that shares memory of `backward` with the same layer in other blocks.
template <class O>
concept SharesScratch = requires(O& operation, O& other) {
  operation.swap_scratch(other);
};

/// A layer of equal blocks.
template <class L>
concept HasBlocks = requires {
  L::blocks;
  typename L::Block;
};

/// The layers that own parameters and names: leaves, or the layer itself.
template <class L>
struct LeavesOf {
  using Type = std::tuple<L>;
};
template <HasLeaves L>
struct LeavesOf<L> {
  using Type = typename L::Leaves;
};
template <class... Tuples>
struct Joined;
template <>
struct Joined<> {
  using Type = std::tuple<>;
};
template <class... First>
struct Joined<std::tuple<First...>> {
  using Type = std::tuple<First...>;
};
template <class... First, class... Second, class... Rest>
struct Joined<std::tuple<First...>, std::tuple<Second...>, Rest...> {
  using Type = typename Joined<std::tuple<First..., Second...>, Rest...>::Type;
};
/// The leaves of all layers, in order.
template <class Layers>
struct AllLeaves;
template <class... Layers>
struct AllLeaves<std::tuple<Layers...>> {
  using Type = typename Joined<typename LeavesOf<Layers>::Type...>::Type;
};

template <class L>
[[nodiscard]] constexpr auto& state_of() {
  if constexpr (HasState<L>) {
    return L::state;
  } else {
    return no_state;
  }
}

}  // namespace detail

}  // namespace dist::nn
