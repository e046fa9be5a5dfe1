// Reductions, a dataset and a layer of your own: each is a type or a function that models what the library's own ones model.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>

#include "backend.hpp"
#include "check.hpp"

namespace {

namespace data = dist::data;
namespace nn = dist::nn;

// [reduction]
/// The value of largest magnitude, with its sign.
struct LargestMagnitude {
  static constexpr std::string_view name = "largest_magnitude";  // what messages call it
  template <class T>
  static constexpr T identity = T{0};
  template <class T>
  constexpr T operator()(T a, T b) const {  // associative; called with values in replica order
    return b * b > a * a ? b : a;
  }
  template <class T>
  static constexpr T finish(T combined, std::size_t /*count*/) {  // Mean divides here
    return combined;
  }
};
// [/reduction]

constexpr std::size_t rows = 2048, global_batch = 64;

// [dataset]
/// Points x from -3 to 3 with their values sin(x). A generator is made anew for each epoch.
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
/// y = sin(x), element by element.
struct Sine {
  template <class In>  // the shape of one input row
  struct On {
    using Output = In;
    static constexpr std::string_view name = "sine";
    static constexpr std::array<nn::ParameterSpec, 0> parameters{};  // learns nothing
    static constexpr bool is_view = false;                           // computes something

    template <class Backend, class T>
    struct Operation {
      void forward(typename Backend::State&, dist::TensorView<const T> x, const nn::ParameterViews<const T, 0>&,
                   dist::TensorView<T> y) {
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = std::sin(x[i]);
      }
      template <bool InputGradient>
      void backward(typename Backend::State&, dist::TensorView<const T> x, const nn::ParameterViews<const T, 0>&,
                    dist::TensorView<const T>, dist::TensorView<T> dy, const nn::ParameterViews<T, 0>&,
                    dist::TensorView<T> dx) {
        if constexpr (InputGradient)
          for (std::size_t i = 0; i < x.size(); ++i) dx[i] = dy[i] * std::cos(x[i]);
      }
    };
  };
};
// [/layer]

/// The loss of the last epoch.
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
  check(std::abs(serial - parallel) < 1e-4f, "three replicas learn what one learns");
}
