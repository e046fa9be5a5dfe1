// Model.fit of images, with a layer, a metric and a callback of the program.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/train.hpp>

namespace nn = dist::nn;
namespace data = dist::data;

namespace {

/// Scales each channel by a gate that two dense layers compute from the means of the channels (Hu et al., "Squeeze-and-Excitation
/// Networks", 2018).
template <std::size_t hidden_units>
struct SqueezeExcite {
  template <class In>
  struct On {
    static_assert(In::rank == 3, "SqueezeExcite needs images");
    using Output = In;
    static constexpr std::size_t channels = In::last_extent, pixels = In::elements / channels;
    static constexpr std::string_view name = "squeeze_excite";
    static constexpr std::array parameters{nn::ParameterSpec{"w1", dist::Shape{channels, hidden_units}},
                                           nn::ParameterSpec{"b1", dist::Shape{hidden_units}},
                                           nn::ParameterSpec{"w2", dist::Shape{hidden_units, channels}},
                                           nn::ParameterSpec{"b2", dist::Shape{channels}}};
    static constexpr bool is_view = false;
    template <std::size_t which, class T>
    static void initialize(dist::TensorView<T> view, dist::RandomStream stream) {
      if constexpr (which == 0)
        nn::GlorotUniform::fill(view, nn::Fans{channels, hidden_units}, stream);
      else if constexpr (which == 2)
        nn::GlorotUniform::fill(view, nn::Fans{hidden_units, channels}, stream);
      else
        std::ranges::fill(view.elements(), T{0});
    }
    template <class Backend, class T>
    struct Operation {
      std::vector<T> means, hidden, gates;
      void forward(typename Backend::State&, dist::TensorView<const T> x, const nn::ParameterViews<const T, 4>& p,
                   dist::TensorView<T> y) {
        const std::size_t rows = x.rows();
        means.assign(rows * channels, 0);
        hidden.assign(rows * hidden_units, 0);
        gates.assign(rows * channels, 0);
        for (std::size_t row = 0; row < rows; ++row) {
          const T* const from = x.data() + row * pixels * channels;
          T* const to = y.data() + row * pixels * channels;
          for (std::size_t i = 0; i < pixels; ++i)
            for (std::size_t c = 0; c < channels; ++c) means[row * channels + c] += from[i * channels + c] / T(pixels);
          for (std::size_t h = 0; h < hidden_units; ++h) {
            T sum = p[1][h];
            for (std::size_t c = 0; c < channels; ++c) sum += means[row * channels + c] * p[0][c * hidden_units + h];
            hidden[row * hidden_units + h] = sum > 0 ? sum : 0;
          }
          for (std::size_t c = 0; c < channels; ++c) {
            T sum = p[3][c];
            for (std::size_t h = 0; h < hidden_units; ++h)
              sum += hidden[row * hidden_units + h] * p[2][h * channels + c];
            gates[row * channels + c] = 1 / (1 + std::exp(-sum));
          }
          for (std::size_t i = 0; i < pixels; ++i)
            for (std::size_t c = 0; c < channels; ++c)
              to[i * channels + c] = from[i * channels + c] * gates[row * channels + c];
        }
      }
      template <bool with_input_gradient>
      void backward(typename Backend::State&, dist::TensorView<const T> x, const nn::ParameterViews<const T, 4>& p,
                    dist::TensorView<const T>, dist::TensorView<T> dy, const nn::ParameterViews<T, 4>& gradients,
                    dist::TensorView<T> dx) {
        for (auto& gradient : gradients) std::ranges::fill(gradient.elements(), T{0});
        for (std::size_t row = 0; row < x.rows(); ++row) {
          const T* const from = x.data() + row * pixels * channels;
          const T* const given = dy.data() + row * pixels * channels;
          std::array<T, channels> of_gates{}, of_means{};
          std::array<T, hidden_units> of_hidden{};
          for (std::size_t i = 0; i < pixels; ++i)
            for (std::size_t c = 0; c < channels; ++c) of_gates[c] += given[i * channels + c] * from[i * channels + c];
          for (std::size_t c = 0; c < channels; ++c) {
            const T gate = gates[row * channels + c];
            of_gates[c] *= gate * (1 - gate);
            gradients[3][c] += of_gates[c];
            for (std::size_t h = 0; h < hidden_units; ++h) {
              gradients[2][h * channels + c] += hidden[row * hidden_units + h] * of_gates[c];
              of_hidden[h] += p[2][h * channels + c] * of_gates[c];
            }
          }
          for (std::size_t h = 0; h < hidden_units; ++h) {
            if (!(hidden[row * hidden_units + h] > 0)) of_hidden[h] = 0;
            gradients[1][h] += of_hidden[h];
            for (std::size_t c = 0; c < channels; ++c) {
              gradients[0][c * hidden_units + h] += means[row * channels + c] * of_hidden[h];
              of_means[c] += p[0][c * hidden_units + h] * of_hidden[h];
            }
          }
          if constexpr (with_input_gradient) {
            T* const to = dx.data() + row * pixels * channels;
            for (std::size_t i = 0; i < pixels; ++i)
              for (std::size_t c = 0; c < channels; ++c)
                to[i * channels + c] = given[i * channels + c] * gates[row * channels + c] + of_means[c] / T(pixels);
          }
        }
      }
    };
  };
};

/// The share of the examples of one class that the network recognises.
struct ClassRecall {
  using Tally = nn::Tally<double, double>;
  std::int64_t label = 0;
  std::string_view name = "recall";
  template <class Outputs, class Targets, class Weights = nn::Unweighted>
  Tally operator()(const Outputs& outputs, const Targets& targets, const Weights& = {}) const {
    const auto rows = nn::values_of(outputs);
    const auto labels = nn::values_of(targets);
    Tally tally{};
    for (std::size_t r = 0; r < rows.rows(); ++r) {
      if (std::int64_t{labels[r]} != label) continue;
      const auto row = rows.row(r).elements();
      tally.count += 1;
      tally.total += std::ranges::max_element(row) - row.begin() == label;
    }
    return tally;
  }
};

struct PrintLearningRate {
  void on_epoch_end(auto& model, const nn::Epoch& epoch, const nn::Logs&) {
    std::printf("epoch %zu: learning rate %g\n", epoch.index, static_cast<double>(model.optimizer().learning_rate()));
  }
};

struct Momentum : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.9;
};
using Normalization = nn::BatchNormalization<nn::PerReplicaStatistics, Momentum>;
using Net = nn::Sequential<nn::Input<24, 24, 3>, nn::Conv2D<16, 3, nn::Linear, 1, nn::Same>, Normalization, nn::ReLU,
                           nn::MaxPool2D<2>, nn::Conv2D<32, 3, nn::Linear, 1, nn::Same>, Normalization, nn::ReLU,
                           SqueezeExcite<8>, nn::MaxPool2D<2>, nn::GlobalAveragePool2D, nn::Dense<4>>;
using Backend = nn::MixedPrecision<nn::OneDnn, dist::BFloat16>;

dist::Tensor<float> to_float(dist::TensorView<const std::uint8_t> image) {
  dist::Tensor<float> result{image.shape()};
  for (std::size_t i = 0; i < image.size(); ++i) result[i] = static_cast<float>(image[i]) / 127.5f - 1;
  return result;
}

/// Rolls an image to the side and changes its brightness, both at random.
auto augment() {
  return data::random_map(
      [](const auto& example, const dist::RandomStream& random) {
        const auto& [image, label, weight] = example;
        dist::Tensor<float> result{image};
        const float gain = 0.9f + 0.2f * random.uniform(0);
        const auto shift = static_cast<std::size_t>(random.uniform(1) * 24) % 24;
        for (std::size_t i = 0; i < 24; ++i)
          for (std::size_t j = 0; j < 24; ++j)
            for (std::size_t c = 0; c < 3; ++c) result(i, j, c) = gain * image(i, (j + shift) % 24, c);
        return std::tuple{std::move(result), label, weight};
      },
      11);
}

}  // namespace

int main() try {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  auto images = data::npy_slices<std::uint8_t, std::int64_t>("images.npy", "labels.npy");
  auto train = data::zip(std::move(images), data::npy_slices<float>("weights.npy")) | data::map([](const auto& each) {
                 const auto& [example, weight] = each;
                 return std::tuple{to_float(example.x), std::int64_t{example.y[0]}, float{weight[0]}};
               }) |
               data::cache() | data::shuffle(2000, 5) | augment() | data::batch(64) | data::prefetch(2);
  auto validation = data::npy_slices<std::uint8_t, std::int64_t>("validation_images.npy", "validation_labels.npy") |
                    data::map([](const auto& example) {
                      return std::tuple{to_float(example.x), std::int64_t{example.y[0]}};
                    }) |
                    data::cache() | data::batch(64);
  nn::Network<Net, Backend> net{strategy, /*seed=*/1};
  constexpr std::int64_t warm_up = 32, steps = 8 * 32;
  const nn::CosineDecay decay{.initial_learning_rate = 3e-3f, .decay_steps = steps - warm_up};
  nn::Model model{strategy,
                  net,
                  nn::With{nn::Adam{}, nn::GlobalClipNorm{1.0f}, nn::WarmUp{warm_up, decay}},
                  nn::SparseCategoricalCrossentropy{.label_smoothing = 0.1f},
                  nn::SparseCategoricalAccuracy{},
                  ClassRecall{3, "recall_3"}};
  std::printf("%s", model.summary().c_str());
  model.fit(train, {.epochs = 8, .validation = validation, .class_weight = {0.5f, 1, 2, 5}, .verbose = 2},
            PrintLearningRate{});
  for (const auto& each : model.evaluate(validation, {.verbose = 0}))
    std::printf("%s %.6f\n", std::string{each.name}.c_str(), each.value);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
