/// What the parts of a network promise each other.
///
/// A layer is an empty struct named after what it does, `Dense<128, Relu>`. It knows its own numbers, but not
/// its input: `Layer::On<Input>`, with the StaticShape of one input row, is the layer in its place, and says
/// everything about it at compile time:
///
/// - `Output`: the StaticShape of one output row. A wrong `Input` fails here, in one static_assert.
/// - `name`: Keras' name of the layer, "dense".
/// - `Layer`, for those who look for it by its type: the layer out of its place.
/// - `parameters`: a std::array of ParameterSpec, empty for layers that learn nothing.
/// - `initialize<Which>(view, stream)`, for layers with parameters: first values of parameter `Which`.
/// - `is_view`: true when output and input are the same elements in the same order; nothing is computed then,
///   and the layer needs no Operation.
/// - `Operation<Backend, T>`: the computation, one object per replica, which may keep state from `forward` to
///   `backward`:
///   - `forward(state, x, parameters, y)` writes all of `y`;
///   - `backward<input_gradient>(state, x, parameters, y, dy, gradients, dx)` overwrites all of `gradients`
///     and, where `input_gradient` is true, all of `dx`. It may change `dy`, which nobody reads afterwards
///     (but see BackwardPass).
///
/// All tensors have the rows of the batch as outermost axis, at least one, and lie where the back end's do
/// (`ViewOn<Backend, T>`). `state` is the back end's (backend.hpp).
///
/// Some members are for the few layers that do more than compute row by row:
///
/// - `uses_replica`: true when the Operation communicates, or computes something else in training than in inference.
///   Its `forward` then gets a LayerCall before the other arguments, its `backward` the replica context. It is called
///   for a batch without rows too, because the other replicas may have some and wait for it in a collective.
/// - `uses_global_rows`: true when a row's number in the global batch matters, as it does for random numbers that are the
///   same at any number of replicas. Needs `uses_replica`; the LayerCall then has `first_row` in training, which costs the
///   network one collective call for all such layers. Random numbers come from LayerRandom.
/// - `state`: a std::array of StateSpec, for what the layer keeps from step to step but does not learn by gradients.
///   Needs `uses_replica`, as it comes with the LayerCall.
///
/// A layer of layers (Add, Concatenate) is one layer to the network around it. It has
///
/// - `Leaves`: a std::tuple of all placed layers inside, whose parameters and state follow each other in its own. In
///   memory, too: those of a layer inside lie as Layout says, from its first on.
///
/// And two of an Operation, for layers that end in an activation, so that one pass over memory does the work of two:
///
/// - `Activation`: the type of the activation;
/// - `fused_backward<Pass>(…)` with the arguments of `backward`, `Pass` a BackwardPass. `fuses<Before>` says whether it
///   takes this activation of the layer before.
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

/// One tensor that a layer learns.
struct ParameterSpec {
  std::string_view name;  ///< "kernel", "bias", "gamma" or "beta"
  Shape shape;
};

/// One tensor that a layer keeps, and the first value of all its elements.
struct StateSpec {
  std::string_view name;  ///< "moving_mean"
  Shape shape;
  double initial = 0;
  bool is_random = false;  ///< the seed of a LayerRandom instead, which follows from the network's
};

/// The parameters of one layer, their gradients or its state, as its Operation gets them.
template <class T, std::size_t Count, dist::MemorySpace Where = HostMemory>
using ParameterViews = std::array<TensorView<T, Where>, Count>;
/// The same where a back end's tensors lie.
template <class Backend, class T, std::size_t Count>
using ParameterViewsOn = ParameterViews<T, Count, typename Backend::Device::Space>;

/// What layers that use the replica get in a pass through the network: `state` is where that of all layers starts, on
/// this replica.
template <class Replica, ForwardMode Mode, class S, dist::MemorySpace Where = HostMemory>
struct ForwardPass;

/// What `forward` of a layer with `uses_replica` gets besides its tensors: the mode, the replica for collectives, and
/// the replica's copy of the layer's state. `S` is const in inference.
template <class Replica, ForwardMode Mode, class S, std::size_t Count, dist::MemorySpace Where = HostMemory>
struct LayerCall {
  static constexpr bool training = std::same_as<Mode, Training>;
  const Replica& replica;
  ParameterViews<S, Count, Where> state;
  /// The rows of the global batch before this replica's, where a layer of the network uses_global_rows, in training.
  std::size_t first_row = 0;

  /// The pass through layers inside of this one, whose state starts at `of_layers`.
  [[nodiscard]] ForwardPass<Replica, Mode, S, Where> pass(S* of_layers = nullptr) const {
    return {replica, of_layers, first_row};
  }
};

template <class Replica, ForwardMode Mode, class S, dist::MemorySpace Where>
struct ForwardPass {
  const Replica& replica;
  S* state;
  std::size_t first_row = 0;

  template <class Net, std::size_t Layer>
  [[nodiscard]] auto layer_call() const {
    const auto views = Net::template layer_state<Layer, Where>(state);
    return LayerCall<Replica, Mode, S, std::tuple_size_v<decltype(views)>, Where>{replica, views, first_row};
  }
};

/// What a layer does in the backward pass. `dx` is written where `InputGradient`: the gradient of the layer's input or,
/// with another activation than Linear as `BeforeFunction`, of what the layer before applied that activation to. Where
/// `ActivationIsApplied`, dy is such a gradient. Without `StoresKernelGradient` the kernel's gradient is not written,
/// and dy becomes the gradient before the activation, from which it can be computed.
template <bool InputGradient, bool StoresKernelGradient = true, bool ActivationIsApplied = false,
          class BeforeFunction = Linear>
struct BackwardPass {
  using Before = BeforeFunction;
  static constexpr bool input_gradient = InputGradient;
  static constexpr bool stores_kernel_gradient = StoresKernelGradient;
  static constexpr bool activation_is_applied = ActivationIsApplied;
};

/// A layer in its place.
template <class L>
concept BoundLayer = requires {
  typename L::Output;
  { L::name } -> std::convertible_to<std::string_view>;
  { L::parameters.size() } -> std::convertible_to<std::size_t>;
  { L::is_view } -> std::convertible_to<bool>;
};

namespace detail {

/// The parameters of a layer that learns nothing.
inline constexpr std::array<ParameterSpec, 0> no_parameters{};
/// The state of a layer that keeps nothing.
inline constexpr std::array<StateSpec, 0> no_state{};

/// The constants of a layer: false where it does not have them.
template <class L>
inline constexpr bool uses_replica = requires {
  requires L::uses_replica;
};
template <class L>
inline constexpr bool uses_global_rows = requires {
  requires L::uses_global_rows;
};
template <class L>
concept HasState = requires {
  L::state;
};
/// A program gave the layer its name.
template <class L>
concept HasName = requires {
  requires L::is_named;
};
template <class L>
concept HasLeaves = requires {
  typename L::Leaves;
};

/// The layers that have parameters and names: those inside of a layer of layers, else the layer itself.
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
