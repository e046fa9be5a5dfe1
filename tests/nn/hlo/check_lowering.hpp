/// Compares networks in programs for XLA with the plain loops.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/device/pjrt/executable.hpp>
#include <dist/hlo/function.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/strategy/mirrored.hpp>
#include <hlo/run.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace dist_test {

using List = std::vector<double>;

/// The results of a replica's pass through a network. The loss is sum(target * y + y^2 / 2) over its rows.
struct PassResult {
  List outputs;
  List input_gradient;
  List gradients;  ///< of the parameters, without padding
  List state;      ///< after the pass, without padding
};

/// The inputs of a replica: the network's parameters and state, without padding, and its rows.
struct Given {
  List parameters;
  List state;
  List x = {};
  List targets = {};
  std::size_t first_row = 0;
};

/// Copies tensors from a layout with padding to a packed layout, and back.
inline List packed(std::span<const dist::nn::Parameter> layout, const List& all) {
  List packed;
  for (const dist::nn::Parameter& each : layout)
    for (std::size_t i = 0; i < each.shape.elements(); ++i) packed.push_back(all[each.offset + i]);
  return packed;
}
inline List unpacked(std::span<const dist::nn::Parameter> layout, const List& packed, std::size_t padded_count) {
  List all(padded_count);
  auto next = packed.begin();
  for (const dist::nn::Parameter& each : layout)
    for (std::size_t i = 0; i < each.shape.elements(); ++i) all[each.offset + i] = *next++;
  return all;
}

/// Runs a pass by plain loops in double.
template <class Net, class Mode, bool InputGradient, class Backend>
PassResult by_loops(const auto& replica, const Given& given) {
  namespace nn = dist::nn;
  using Replica = std::remove_cvref_t<decltype(replica)>;
  using State = std::conditional_t<std::is_same_v<Mode, nn::Training>, double, const double>;
  nn::detail::Chain<Net, Backend, double> chain;
  auto engine = [&] {
    if constexpr (nn::RoundsFactors<Backend>)
      return typename Backend::State{replica.queue()};
    else
      return typename Backend::State{};
  }();
  const List parameters = unpacked(Net::parameters, given.parameters, Net::padded_count);
  List gradients(Net::padded_count), state = unpacked(Net::state, given.state, Net::padded_state_count);
  const dist::TensorView<const double> x{given.x.data(),
                                         Net::InputShape::shape().stacked(given.x.size() / Net::InputShape::elements)};
  const auto y = chain.forward(replica.queue(), engine, parameters.data(), x,
                               nn::ForwardPass<Replica, Mode, State>{replica, state.data(), given.first_row});
  PassResult result;
  result.outputs.assign(y.values.elements().begin(), y.values.elements().end());
  for (std::size_t i = 0; i < y.values.size(); ++i) y.gradient[i] = given.targets[i] + y.values[i];
  chain.template backward<InputGradient>(replica.queue(), engine, parameters.data(), gradients.data(), replica,
                                         dist::NoOp{});
  if constexpr (InputGradient) {
    const auto dx = chain.input_gradient();
    result.input_gradient.assign(dx.elements().begin(), dx.elements().end());
  }
  result.gradients = packed(Net::parameters, gradients);
  result.state = packed(Net::state, state);
  return result;
}

/// The passes of training and inference in one program, for batches of `rows` rows.
template <class Net, bool InputGradient, class Backend>
class LoweredProgram {
  template <class Mode>
  using TraceArguments = dist::nn::TraceArguments<Mode, Backend>;
  using Parameters = dist::nn::TracedParameters<Net>;
  using State = dist::nn::TracedState<Net>;
  using X = dist::nn::TracedInput<Net>;
  using Y = dist::nn::TracedOutput<Net>;
  using Number = dist::hlo::Traced<std::int32_t>;

 public:
  LoweredProgram(std::size_t replicas, std::size_t rows)
      : rows_(rows), client_(testing::cpus(replicas)), executable_(client_, module(replicas, rows), replicas) {}

  /// Returns two results per replica: training and inference.
  std::vector<std::array<PassResult, 2>> operator()(const std::vector<Given>& given) {
    std::vector<std::vector<dist::pjrt::Buffer>> buffers(given.size());
    std::vector<std::vector<const dist::pjrt::Buffer*>> arguments(given.size());
    for (std::size_t replica = 0; replica < given.size(); ++replica) {
      const auto add = [&](const auto& tensor) { buffers[replica].push_back(upload(client_, replica, tensor)); };
      const auto add_all = [&](std::span<const dist::nn::Parameter> layout, const List& all) {
        auto next = all.begin();
        for (const dist::nn::Parameter& each : layout) {
          dist::Tensor<float> tensor{each.shape};
          for (float& element : tensor.elements()) element = static_cast<float>(*next++);
          add(tensor);
        }
      };
      const Given& mine = given[replica];
      const std::size_t rows = mine.x.size() / Net::InputShape::elements;
      add(dist::Tensor<std::int32_t>{{}, {static_cast<std::int32_t>(rows)}});
      add(dist::Tensor<std::int32_t>{{}, {static_cast<std::int32_t>(mine.first_row)}});
      add(filled(mine.x, Net::InputShape::shape()));
      add(filled(mine.targets, Net::OutputShape::shape()));
      add_all(Net::parameters, mine.parameters);
      add_all(Net::state, mine.state);
      for (const dist::pjrt::Buffer& buffer : buffers[replica]) arguments[replica].push_back(&buffer);
    }
    const auto results = executable_.execute(arguments);
    std::vector<std::array<PassResult, 2>> passes(given.size());
    for (std::size_t replica = 0; replica < given.size(); ++replica) {
      auto next = results[replica].begin();
      const auto take = [&](List& to) {
        const dist::Tensor<float> tensor = (next++)->template download<float>();
        to.insert(to.end(), tensor.elements().begin(), tensor.elements().end());
      };
      for (PassResult& pass : passes[replica]) {
        take(pass.outputs);
        pass.outputs.resize(given[replica].targets.size());
        if constexpr (InputGradient) {
          take(pass.input_gradient);
          const auto padding = pass.input_gradient.begin() + static_cast<std::ptrdiff_t>(given[replica].x.size());
          CHECK(std::all_of(padding, pass.input_gradient.end(), [](double each) { return each == 0; }));
          pass.input_gradient.resize(given[replica].x.size());
        }
        for (std::size_t i = 0; i < Net::parameters.size(); ++i) take(pass.gradients);
        for (std::size_t i = 0; i < Net::state.size(); ++i) take(pass.state);
      }
    }
    return passes;
  }

 private:
  /// The rows, followed by padding rows.
  dist::Tensor<float> filled(const List& values, dist::Shape row) const {
    dist::Tensor<float> all{row.stacked(rows_)};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i < values.size() ? static_cast<float>(values[i]) : 3;
    return all;
  }

  static std::string module(std::size_t replicas, std::size_t rows) {
    return [&]<class... P, class... S>(std::type_identity<std::tuple<P...>>, std::type_identity<std::tuple<S...>>) {
      return dist::hlo::trace<Number, Number, X, Y, P..., S...>(
                 replicas, rows,
                 [](Number counted, Number first_row, X x, Y targets, auto... tensors) {
                   const std::tuple<P..., S...> all{tensors...};
                   const auto parameters = dist::nn::detail::copied<0, sizeof...(P)>(all);
                   const auto state = dist::nn::detail::copied<sizeof...(P), sizeof...(S)>(all);
                   return std::tuple_cat(
                       pass(TraceArguments<dist::nn::Training>{counted, first_row}, parameters, state, x, targets),
                       pass(TraceArguments<dist::nn::Inference>{counted, first_row}, parameters, state, x, targets));
                 })
          .module();
    }(std::type_identity<Parameters>{}, std::type_identity<State>{});
  }
  template <class Arguments>
  static auto pass(const Arguments& arguments, const Parameters& parameters, State state, X x, Y targets) {
    namespace hlo = dist::hlo;
    const Y y = dist::nn::emit_forward<Net>(arguments, parameters, state, x);
    const Y losses = targets * y + y * y * Y{0.5F};
    const auto counts = hlo::broadcast<typename Y::template With<bool>, 0>(arguments.template counts<Y>());
    const auto loss = hlo::reduce(dist::sum, hlo::select(counts, losses, 0));
    if constexpr (InputGradient) {
      return std::tuple_cat(std::tuple{y}, hlo::gradients(loss, std::tuple_cat(std::tuple{x}, parameters)), state);
    } else {
      return std::tuple_cat(std::tuple{y}, hlo::gradients(loss, parameters), state);
    }
  }

  std::size_t rows_;
  dist::pjrt::Client client_;
  dist::pjrt::Executable executable_;
};

/// Compares outputs, gradients of the input and of the parameters, and state, in training and in inference. An entry
/// of `steps` is a step: the number of rows of each replica. The program adds at least one padding row. The state of
/// a step is the input of the next. `elements(count, stream)` generates batches. Without `InputGradient` the input
/// gradient is not computed. `Backend` computes the plain loops on the host. The program computes in float, and the
/// order of its sums depends on the processor.
template <class Net, bool InputGradient = true, class Backend = dist::nn::Reference,
          class Elements = List (*)(std::size_t, std::uint64_t)>
void check_emitted(const std::vector<std::vector<std::size_t>>& steps, Elements elements = numbers,
                   double tolerance = 2e-6) {
  const std::size_t replicas = steps[0].size();
  std::size_t most = 0;
  for (const auto& rows : steps) most = std::max(most, *std::max_element(rows.begin(), rows.end()));
  dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
  LoweredProgram<Net, InputGradient, Backend> program{replicas, most + 1};

  const auto rounded = [](List values) {  // to float, once, so that both have equal inputs
    for (double& each : values) each = static_cast<double>(static_cast<float>(each));
    return values;
  };
  List state(Net::padded_state_count);
  Net::initialize_state(dist::TensorView<double>{state.data(), dist::Shape{state.size()}}, 5);
  std::vector<Given> given(
      replicas, {.parameters = rounded(numbers(Net::parameter_count, 1)), .state = packed(Net::state, state)});
  std::uint64_t stream = 10;
  for (const std::vector<std::size_t>& rows : steps) {
    std::size_t first_row = 0;
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      given[replica].first_row = first_row;
      given[replica].x = rounded(elements(rows[replica] * Net::InputShape::elements, ++stream));
      given[replica].targets = rounded(numbers(rows[replica] * Net::OutputShape::elements, ++stream));
      first_row += rows[replica];
    }
    const auto computed = program(given);
    std::vector<std::array<PassResult, 2>> expected(replicas);
    strategy.run([&](auto& replica) {
      const Given& mine = given[replica.local_index()];
      expected[replica.local_index()] = {by_loops<Net, dist::nn::Training, InputGradient, Backend>(replica, mine),
                                         by_loops<Net, dist::nn::Inference, InputGradient, Backend>(replica, mine)};
    });
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      CAPTURE(replica);
      CAPTURE(rows[replica]);
      for (std::size_t mode = 0; mode < 2; ++mode) {
        CAPTURE(mode);
        const PassResult& mine = computed[replica][mode];
        const PassResult& wanted = expected[replica][mode];
        CHECK(difference(mine.outputs, wanted.outputs) < tolerance);
        CHECK(difference(mine.input_gradient, wanted.input_gradient) < tolerance);
        CHECK(difference(mine.gradients, wanted.gradients) < tolerance);
        CHECK(difference(mine.state, wanted.state) < tolerance);
      }
      given[replica].state = rounded(expected[replica][0].state);
    }
  }
}

}  // namespace dist_test
