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
#include <dist/nn/check.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/reference/backend.hpp>

namespace dist::nn {

namespace detail {

/// The values of a traced forward for its backward.
struct TracedForward {
  std::vector<hlo::Value> parameters;
  hlo::Value input;
  hlo::Value output;
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
    const TraceArguments<Mode, typename Network::Backend> arguments{trace.rows(), trace.first_row()};
    const auto rows = rows_of<Network>(x);
    const auto outputs = [&] {
      if constexpr (Net::state_count == 0) {
        std::tuple<> state;
        return emit_forward<Net>(arguments, parameters, state, rows);
      } else {
        using S = typename std::remove_cvref_t<decltype(network.state())>::Element;
        auto state = hlo::detail::arrays_of<TracedState<Net, S>>(trace.read_parts(network.state(), Net::state));
        const auto y = emit_forward<Net>(arguments, parameters, state, rows);
        if constexpr (std::same_as<Mode, Training>)
          trace.write_parts(network.state(), Net::state, hlo::detail::values_of(state));
        return y;
      }
    }();
    trace.leave(&network, detail::TracedForward{std::move(values), rows.value(), outputs.value()});
    return outputs;
  }

  /// Differentiates with respect to the GradientSources, and returns the input's gradient if it is one of them. Starts
  /// from a traced number, the loss, or from an array with the gradient of the outputs.
  template <InTrace Trace, class Network, class Loss, bool Parameters, bool Input>
  static auto backward(const Trace& trace, Network& network, const Loss& loss, GradientSources<Parameters, Input>) {
    const auto* const last = trace.template left<detail::TracedForward>(&network);
    if (last == nullptr)
      throw InvalidArgument("A network's backward was called before its forward",
                            "the compiled step has not computed a batch with it yet",
                            "Call forward and a loss first, in the same step");
    std::vector<hlo::Value> by;
    if constexpr (Parameters) by = last->parameters;
    if constexpr (Input) by.push_back(last->input);
    std::vector<hlo::Value> gradients =
        hlo::untyped::gradients(number_to_differentiate<Network>(trace, *last, loss), by);
    if constexpr (Input) {
      const TracedInput<typename Network::Architecture, typename Network::Element> of_input{gradients.back()};
      gradients.pop_back();
      if constexpr (Parameters) trace.leave(&network, detail::TracedGradients{std::move(gradients)});
      return of_input;
    } else {
      trace.leave(&network, detail::TracedGradients{std::move(gradients)});
    }
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

  template <class Network, class T>
  [[nodiscard]] static hlo::Value number_to_differentiate(const InTrace auto&, const detail::TracedForward&,
                                                          hlo::Traced<T> loss) {
    return loss.value();
  }
  /// The sum of outputs times their given gradient, whose gradient is the given one. Padding rows have none.
  template <class Network, class X>
  [[nodiscard]] static hlo::Value number_to_differentiate(const InTrace auto& trace, const detail::TracedForward& last,
                                                          const X& gradient) {
    using T = typename Network::Element;
    using Output = TracedOutput<typename Network::Architecture, T>;
    static_assert(std::same_as<typename X::Element, T>,
                  "backward starts from a traced loss, or from a gradient of the network's element type: convert it "
                  "with map, or x.as<float>()");
    const hlo::Value given = gradient.value();
    const Shape wanted = Output::type().shape;
    detail::require_gradient_of_shape(hlo::untyped::type_of(given).shape, wanted);
    const auto counts = detail::first_rows<hlo::batch>(trace.rows());
    const Output of_outputs = hlo::select(hlo::broadcast<typename Output::template With<bool>, 0>(counts),
                                          Output{hlo::untyped::reshape(given, wanted)}, Output{0});
    return hlo::reduce(sum, Output{last.output} * hlo::stop_gradient(of_outputs)).value();
  }

  /// Returns `x` in the network's input shape, always as a new value; trailing axes of extent 1 may be missing or
  /// surplus.
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
    // A reshape even to the same shape: the input gradient must not contain the gradients of other uses of `x`.
    return Rows{hlo::untyped::reshape(x.value(), wanted)};
  }
};

}  // namespace dist::nn
