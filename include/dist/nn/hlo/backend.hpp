#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/device/pjrt/xla.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/reference/backend.hpp>

namespace dist::nn {

namespace detail {

/// The parameters that a traced forward has read, for its backward.
struct TracedForward {
  std::vector<hlo::Value> parameters;
};
/// The parameter gradients of a traced backward, for an optimizer.
struct TracedGradients {
  std::vector<hlo::Value> gradients;
};

}  // namespace detail

/// A back end for networks in steps compiled by XLA: layers are traced (see Lowering), and hlo::gradients
/// differentiates them. Replica functions that are not compiled use the loops of Reference, on the host.
struct Xla : Reference {
  static constexpr std::string_view name = "xla";
  static constexpr bool traces_networks = true;
  using Device = dist::Xla;

  /// Returns the output for the rows `x`, an hlo::Traced or an hlo::Dynamic.
  template <InTrace Trace, class Network, class X, ForwardMode Mode>
  [[nodiscard]] static auto forward(const Trace& trace, Network& network, const X& x, Mode) {
    using Net = typename Network::Architecture;
    using T = typename Network::Element;
    std::vector<hlo::Value> values = trace.read_parts(network.parameters(), Net::parameters);
    const auto parameters = hlo::detail::arrays_of<TracedParameters<Net, T>>(values);
    trace.leave(&network, detail::TracedForward{std::move(values)});
    const TraceArguments<Mode, typename Network::Backend> arguments{trace.rows(), trace.first_row()};
    const auto rows = rows_of<Network>(x);
    if constexpr (Net::state_count == 0) {
      std::tuple<> state;
      return emit_forward<Net>(arguments, parameters, state, rows);
    } else {
      using S = typename std::remove_cvref_t<decltype(network.state())>::Element;
      auto state = hlo::detail::arrays_of<TracedState<Net, S>>(trace.read_parts(network.state(), Net::state));
      const auto outputs = emit_forward<Net>(arguments, parameters, state, rows);
      if constexpr (std::same_as<Mode, Training>)
        trace.write_parts(network.state(), Net::state, hlo::detail::values_of(state));
      return outputs;
    }
  }

  /// Differentiates the traced number `loss` with respect to all parameters.
  template <InTrace Trace, class Network, class T>
  static void backward(const Trace& trace, Network& network, hlo::Traced<T> loss) {
    const auto* const last = trace.template left<detail::TracedForward>(&network);
    if (last == nullptr)
      throw InvalidArgument("A network's backward was called before its forward",
                            "the compiled step has not computed a batch with it yet",
                            "Call forward and a loss first, in the same step");
    trace.leave(&network, detail::TracedGradients{hlo::untyped::gradients(loss.value(), last->parameters)});
  }

  /// The current parameters in this step, in the order of the layout.
  template <InTrace Trace, class Network>
  [[nodiscard]] static auto parameters(const Trace& trace, Network& network) {
    return arrays<typename Network::Element>(trace.read_parts(network.parameters(), Network::layout()));
  }
  /// The gradients of the last backward, in the order of the layout. Throws InvalidArgument before the first
  /// backward.
  template <InTrace Trace, class Network>
  [[nodiscard]] static auto gradients(const Trace& trace, Network& network) {
    return arrays<typename Network::Element>(gradients_left(trace, network).gradients);
  }
  /// Adds to a parameter's gradient. Throws InvalidArgument before the first backward.
  template <InTrace Trace, class Network, class T>
  static void add_gradient(const Trace& trace, Network& network, std::size_t parameter, hlo::Dynamic<T> more) {
    detail::TracedGradients all = gradients_left(trace, network);
    all.gradients[parameter] = hlo::untyped::add(all.gradients[parameter], more.value());
    trace.leave(&network, std::move(all));
  }

 private:
  template <class T>
  [[nodiscard]] static std::vector<hlo::Dynamic<T>> arrays(const std::vector<hlo::Value>& values) {
    std::vector<hlo::Dynamic<T>> arrays;
    for (const hlo::Value value : values) arrays.emplace_back(value);
    return arrays;
  }
  template <InTrace Trace, class Network>
  [[nodiscard]] static const detail::TracedGradients& gradients_left(const Trace& trace, Network& network) {
    const auto* const last = trace.template left<detail::TracedGradients>(&network);
    if (last == nullptr)
      throw InvalidArgument("A network has no gradients to use", "the compiled step has not called backward yet",
                            "Call forward, a loss and backward first, in the same step");
    return *last;
  }

  /// Returns `x` in the network's input shape; trailing axes of extent 1 may be missing or surplus.
  template <class Network, class X>
  [[nodiscard]] static auto rows_of(const X& x) {
    using T = typename Network::Element;
    static_assert(std::same_as<typename X::Element, T>,
                  "a network takes batches of its element type: convert the batch with map, or with x.as<float>()");
    using Rows = TracedInput<typename Network::Architecture, T>;
    const Shape given = hlo::untyped::type_of(x.value()).shape, wanted = Rows::type().shape;
    Network::require_rows_of_input_shape(given);
    if (given[0] != wanted[0])
      throw ShapeMismatch("A batch does not fit the compiled step",
                          concat("it has ", given[0], " rows, the batch of the step has ", wanted[0]),
                          "Give forward all rows of the step's batch");
    return Rows{given == wanted ? x.value() : hlo::untyped::reshape(x.value(), wanted)};
  }
};

}  // namespace dist::nn
