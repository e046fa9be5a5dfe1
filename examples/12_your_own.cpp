// A user-defined reduction, dataset and layer, which model the same concepts as the library's own.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/hlo/function.hpp>
#include <dist/nn.hpp>
#include <dist/nn/hlo/lowering.hpp>

#include "backend.hpp"
#include "check.hpp"

namespace {

namespace data = dist::data;
namespace nn = dist::nn;

// [reduction]
/// The value of largest magnitude, with its sign.
struct LargestMagnitude {
  static constexpr std::string_view name = "largest_magnitude";  // shown in messages
  template <class T>
  static constexpr T identity = T{0};
  template <class T>
  constexpr T operator()(T a, T b) const {  // must be associative; operands are in replica order
    return b * b > a * a ? b : a;
  }
  template <class T>
  static constexpr T finish(T combined, std::size_t /*count*/) {  // dist::Mean divides here
    return combined;
  }
};
// [/reduction]

constexpr std::size_t rows = 2048, global_batch = 64;

// [dataset]
/// Points x from -3 to 3 with values sin(x). Each epoch creates a new generator.
auto samples(std::uint64_t seed) {
  return data::generator(
      [seed](std::uint64_t epoch) {
        return [random = dist::RandomStream{seed + epoch}, i = std::size_t{0}]() mutable {
          using Sample = data::Example<dist::Tensor<float>, float>;
          if (i == rows) return std::optional<Sample>{};
          dist::Tensor<float> x{{1}};
          x[0] = 6 * random.uniform(i++) - 3;
          return std::optional<Sample>{{x, std::sin(x[0])}};
        };
      },
      data::Cardinality::known(rows));
}
// [/dataset]

// [layer]
/// y = sin(frequency * x), element by element. The network learns a frequency for each input.
struct Sine {
  template <class In>  // the dist::StaticShape of one input row
  struct On {
    using Layer = Sine;
    using Output = In;
    static constexpr std::string_view name = "sine";
    static constexpr std::size_t width = In::elements;
    static constexpr std::array parameters{nn::ParameterSpec{"frequency", {width}}};
    static constexpr bool is_view = false;  // the output is not a view of the input

    template <std::size_t Which, class T>  // the first values of parameter number Which
    static void initialize(dist::TensorView<T> values, dist::RandomStream /*random*/) {
      for (std::size_t k = 0; k < width; ++k) values[k] = 1;
    }

    template <class Backend, class T>
    struct Operation {
      void forward(typename Backend::State&, dist::TensorView<const T> x, const nn::ParameterViews<const T, 1>& learnt,
                   dist::TensorView<T> y) {
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = std::sin(learnt[0][i % width] * x[i]);
      }
      template <bool InputGradient>  // false for the first layer, which has no dx
      void backward(typename Backend::State&, dist::TensorView<const T> x, const nn::ParameterViews<const T, 1>& learnt,
                    dist::TensorView<const T> /*y*/, dist::TensorView<T> dy, const nn::ParameterViews<T, 1>& gradients,
                    dist::TensorView<T> dx) {
        for (std::size_t k = 0; k < width; ++k) gradients[0][k] = 0;  // overwrite: the sum over this replica's rows
        for (std::size_t i = 0; i < x.size(); ++i) {
          const T slope = dy[i] * std::cos(learnt[0][i % width] * x[i]);
          gradients[0][i % width] += slope * x[i];
          if constexpr (InputGradient) dx[i] = slope * learnt[0][i % width];
        }
      }
    };
  };
};
// [/layer]

}  // namespace

// [lowering]
/// The layer in programs that XLA compiles: the forward pass on traced arrays, whose gradients follow.
template <>
struct dist::nn::Lowering<Sine> {
  template <class Bound, class Arguments, dist::hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters& parameters, State&) {
    return sin(x * dist::hlo::broadcast<X, 1>(std::get<0>(parameters)));  // [rows, width] and [width]
  }
};
// [/lowering]

namespace {

/// Returns the loss of the last epoch.
template <dist::Strategy S>
float train(S& strategy) {
  using Net = nn::Sequential<nn::Input<1>, nn::Dense<32>, Sine, nn::Dense<1>>;
  nn::Network<Net, Backend> net{strategy, /*seed=*/3};
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 1e-2f}};
  auto batches = strategy.distribute_dataset(samples(7) | data::batch(global_batch));
  auto step = [&](auto& replica, const auto& part) {
    auto outputs = net.forward(replica, part.x);
    auto loss = nn::mean_squared_error(replica, outputs, part.y, global_batch);
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);
    return loss.value();
  };
  float loss = 0;
  for (int epoch = 0; epoch < 10; ++epoch) {
    loss = 0;
    for (auto&& batch : batches) loss += strategy.reduce(dist::sum, strategy.run(step, batch));
  }
  return loss / static_cast<float>(rows / global_batch);
}

}  // namespace

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  const auto deviations = strategy.run([](auto& replica) {
    const float mine = replica.replica_id().index() == 1 ? -5.0f : 4.0f;
    return replica.all_reduce(LargestMagnitude{}, mine);
  });
  check(strategy.local_results(deviations)[2] == -5.0f, "every replica gets the value of largest magnitude");

  // [function]
  const auto norms = strategy.run([](auto& replica) {
    std::vector<double> values{3, static_cast<double>(replica.replica_id().index())};
    const auto hypotenuse = dist::reduction([](auto a, auto b) { return std::hypot(a, b); }, /*identity=*/0);
    replica.all_reduce(hypotenuse, values);  // in place, element by element
    return values[0];
  });
  // [/function]
  check(std::abs(strategy.local_results(norms)[1] - 3 * std::sqrt(3.0)) < 1e-12, "three times 3 squared is 27");

  dist::Default alone;
  const float serial = train(alone), parallel = train(strategy);
  std::printf("mean squared error after 10 epochs: %.5f, with three replicas %.5f\n", static_cast<double>(serial),
              static_cast<double>(parallel));
  check(serial < 1e-3f, "the network learns the sine; a constant has an error of about 0.5");
  check(std::abs(serial - parallel) < 1e-4f, "three replicas reach the same loss as one");

  using Rows = dist::hlo::Traced<float, 4, 2>;
  using Frequency = dist::hlo::Traced<float, 2>;
  const auto program = dist::hlo::trace<Rows, Frequency>(/*replicas=*/1, [](Rows x, Frequency frequency) {
    const nn::TraceArguments<nn::Inference> inference{4, 0};
    const std::tuple parameters{frequency};
    std::tuple<> none;
    return nn::emit_forward<nn::Sequential<nn::Input<2>, Sine>>(inference, parameters, none, x);
  });
  check(program.module().find("stablehlo.sine") != std::string::npos, "the layer's program has a sine");
}
