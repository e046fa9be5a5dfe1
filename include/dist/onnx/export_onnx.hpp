#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/nn/network.hpp>
#include <dist/onnx/graph.hpp>
#include <dist/onnx/operators.hpp>

namespace dist::onnx::detail {

/// The largest message of protocol buffers.
inline constexpr std::size_t max_model_bytes = 2'147'483'647;

/// Returns the model of a network with these weights.
template <class Net, class Weights>
[[nodiscard]] std::string model_of(Weights& weights) {
  Graph graph;
  const Value x = graph.input<typename Weights::Element>(Net::InputShape::shape());
  return graph.model(add_layers<Net>(graph, x, weights));
}

}  // namespace dist::onnx::detail

namespace dist::nn {

/// Writes a network's inference as an ONNX model (opset 17), with its weights:
///
///     nn::export_onnx(strategy, network, "model.onnx");
///
/// The model's "input" is [batch, …], any number of rows of the network's input shape; its result is "output". Elements
/// have the network's type, and parameters keep their names. Kernels of convolutions have ONNX' layout, and images are
/// transposed where needed.
///
/// The first process writes the file atomically (AtomicFile), and all return after that. A collective call of the
/// processes, outside replica functions. Throws InvalidArgument for a layer without an operator (see
/// dist::onnx::Operator) and for a model of 2 GiB or more, and FileError if the system refuses.
template <Strategy S, class Net, Backend BackendType, class T, GradientStorage Storage>
void export_onnx(S& strategy, Network<Net, BackendType, T, Storage>& network, const std::string& path) {
  dist::detail::run_collectively(strategy, [&] {
    auto scope = strategy.scope();
    using Kept = typename Network<Net, BackendType, T, Storage>::State::Element;
    Tensor<Kept> state;
    if constexpr (Net::state_count > 0) state = network.state().whole(scope);
    onnx::Weights<T, Kept> weights{{network.layout(), network.parameters().whole(scope)},
                                   {network.state_layout(), std::move(state)}};
    const std::string model = onnx::detail::model_of<Net>(weights);
    if (model.size() > onnx::detail::max_model_bytes)
      throw InvalidArgument("The network is too large for an ONNX file",
                            concat("the model has ", model.size(), " bytes, and at most ",
                                   onnx::detail::max_model_bytes, " are supported"),
                            "Export a network of a smaller type, such as Float16");
    if (strategy.is_chief()) {
      io::AtomicFile file{path};
      file.append(std::as_bytes(std::span<const char>{model}));
      file.commit();
    }
    strategy.workers().communicator().barrier();  // no process reads the file before it exists
  });
}
/// Reports unsupported arguments.
template <class S, class Other>
void export_onnx(S&, Other&, const std::string&) {
  static_assert(dist::detail::always_false<Other>, "nn::export_onnx takes a strategy and an nn::Network made on it");
}

}  // namespace dist::nn
