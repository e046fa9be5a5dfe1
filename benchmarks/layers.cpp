// Single layers, forward and backward, with the oneDNN backend and with bare oneDNN primitives on one thread. The
// results are checked first, except kernel gradients, which have other layouts.
//
//   bench_layers [ROUNDS [JSON]]        all contenders in turns, ratios
//   bench_layers --only NAME [SECONDS]  one contender alone, for a profiler
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>

#include "support/bare_primitives.hpp"
#include "support/named_contenders.hpp"
#include "support/training_steps.hpp"

namespace {

namespace nn = dist::nn;
namespace bare = bench::bare;
using Strategy = dist::OneDevice<dist::Cpu>;
enum class InputGradient { none, wanted };

/// A layer on batches of `rows` rows of shape `In`, computed by the backend and by `Bare` primitives.
template <class Layer, class In, std::size_t rows, class Bare, InputGradient gradient = InputGradient::wanted>
class Pair {
  using Bound = typename Layer::template On<In>;
  using Learned = nn::detail::Layout<nn::detail::Learned, std::tuple<Bound>>;
  using Kept = nn::detail::Layout<nn::detail::Kept, std::tuple<Bound>>;
  static constexpr bool input_gradient = gradient == InputGradient::wanted;
  static constexpr std::size_t input_size = rows * In::elements;
  static constexpr std::size_t output_size = rows * Bound::Output::elements;

 public:
  Pair() {
    strategy_.run([this](auto& replica) {
      const dist::RandomStream random{5};
      std::uint64_t draw = 0;
      for (const auto* buffer : {&x_, &dy_, &parameters_})
        for (float& value : buffer->component(replica)) value = random.uniform(draw++) - 0.5F;
      const auto one_thread = state_.enter();
      bare::Buffers buffers{rows, data(replica, x_), data(replica, y_), data(replica, dy_), data(replica, dx_), {}, {}};
      const auto parameters = Learned::template of_layer<0>(data(replica, parameters_));
      const auto gradients = Learned::template of_layer<0>(data(replica, gradients_));
      for (std::size_t which = 0; which < parameters.size(); ++which) {
        buffers.parameters[which] = parameters[which].data();
        buffers.gradients[which] = gradients[which].data();
      }
      Bare::template add<Bound, input_gradient>(primitives_, buffers);
    });
  }

  double layer() {
    strategy_.run([this](auto& replica) {
      const auto one_thread = state_.enter();
      const dist::TensorView<float> x{data(replica, x_), In::shape().stacked(rows)};
      const dist::TensorView<float> dx{data(replica, dx_), In::shape().stacked(rows)};
      const dist::TensorView<float> y{data(replica, y_), Bound::Output::shape().stacked(rows)};
      const dist::TensorView<float> dy{data(replica, dy_), Bound::Output::shape().stacked(rows)};
      const auto parameters = Learned::template of_layer<0>(static_cast<const float*>(data(replica, parameters_)));
      const auto gradients = Learned::template of_layer<0>(data(replica, gradients_));
      if constexpr (nn::detail::uses_replica<Bound>) {
        const auto kept = Kept::template of_layer<0>(data(replica, kept_));
        using Call = nn::LayerCall<std::remove_cvref_t<decltype(replica)>, nn::Training, float, Kept::tensors.size()>;
        operation_.forward(Call{replica, kept}, state_, x, parameters, y);
        operation_.template backward<input_gradient>(replica, state_, x, parameters, y, dy, gradients, dx);
      } else {
        operation_.forward(state_, x, parameters, y);
        operation_.template backward<input_gradient>(state_, x, parameters, y, dy, gradients, dx);
      }
    });
    return rows;
  }
  double primitives() {
    strategy_.run([this](auto&) {
      const auto one_thread = state_.enter();
      primitives_.run();
    });
    return rows;
  }

  /// True if both ways give the same results up to rounding.
  bool agree() {
    const auto results_of = [this](double (Pair::*way)()) {
      (this->*way)();
      std::vector<float> all;
      strategy_.run([&](auto& replica) {
        const auto append = [&](const auto& values) { all.insert(all.end(), values.begin(), values.end()); };
        append(y_.component(replica));
        if (input_gradient) append(dx_.component(replica));
        const auto gradients = Learned::template of_layer<0>(data(replica, gradients_));
        for (std::size_t which = Bare::own_layouts; which < gradients.size(); ++which)
          append(gradients[which].elements());
        std::ranges::fill(y_.component(replica), -9.0F);
        std::ranges::fill(dx_.component(replica), -9.0F);
        std::ranges::fill(gradients_.component(replica), -9.0F);
      });
      return all;
    };
    const std::vector<float> ours = results_of(&Pair::layer);
    const std::vector<float> theirs = results_of(&Pair::primitives);
    return std::ranges::equal(ours, theirs,
                              [](float a, float b) { return std::abs(a - b) <= 1e-3F * (1 + std::abs(b)); });
  }

 private:
  using Buffer = dist::ReplicaBuffer<float>;
  static float* data(const auto& replica, const Buffer& buffer) { return buffer.component(replica).data(); }

  Strategy strategy_;
  Buffer x_ = strategy_.buffer<float>({input_size});
  Buffer y_ = strategy_.buffer<float>({output_size});
  Buffer dy_ = strategy_.buffer<float>({output_size});
  Buffer dx_ = strategy_.buffer<float>({input_size});
  Buffer parameters_ = strategy_.buffer<float>({Learned::padded_count + 1});
  Buffer gradients_ = strategy_.buffer<float>({Learned::padded_count + 1});
  Buffer kept_ = strategy_.buffer<float>({Kept::padded_count + 1});
  nn::OneDnn::State state_;
  typename Bound::template Operation<nn::OneDnn, float> operation_;
  bare::Primitives primitives_;
};

/// The comparisons. The contenders of a comparison are called `name` and `name` + "_bare".
struct Comparisons {
  /// `Way` must be a Pair.
  template <class Way>
  void add(const std::string& name, const std::string& title) {
    const auto make = [name](double (Way::*way)()) {
      const auto pair = std::make_shared<Way>();
      if (!pair->agree()) {
        std::fprintf(stderr, "%s: the results of the layer and the bare primitives differ\n", name.c_str());
        std::exit(1);
      }
      return [pair, way] { return (pair.get()->*way)(); };
    };
    const std::string& layer = kept.emplace_back(name);
    const std::string& primitives = kept.emplace_back(name + "_bare");
    const std::string& quotient = kept.emplace_back(title + ": time over the primitives'");
    contenders.push_back({layer, title, [make] { return bench::Work{make(&Way::layer)}; }});
    contenders.push_back({primitives, title + ", bare", [make] { return bench::Work{make(&Way::primitives)}; }});
    quotients.push_back({quotient.c_str(), primitives, layer});
  }

  /// A layer without a counterpart in primitives.
  template <class Layer, class In, std::size_t rows>
  void add_alone(const std::string& name, const std::string& title) {
    using Way = Pair<Layer, In, rows, bare::Nothing>;
    contenders.push_back({kept.emplace_back(name), title,
                          [] { return bench::Work{[pair = std::make_shared<Way>()] { return pair->layer(); }}; }});
  }

  std::deque<std::string> kept;  // strings that the other members refer to
  std::vector<bench::NamedContender> contenders;
  std::vector<bench::Quotient> quotients;
};

template <std::size_t Filters>
using Convolution = nn::Conv2D<Filters, 3, nn::Linear, 1, nn::Same>;
template <std::size_t... Extents>
using Shape = dist::StaticShape<Extents...>;

}  // namespace

int main(int argc, char** argv) {
  Comparisons all;
  all.add<Pair<nn::Conv2D<32, 3, nn::Relu>, Shape<28, 28, 1>, 64, bare::Convolution, InputGradient::none>>(
      "conv_1", "Conv2D 1 to 32, ReLU, 64 x 28x28");
  all.add<Pair<Convolution<64>, Shape<8, 8, 64>, 32, bare::Convolution>>("conv_64", "Conv2D 64 to 64, 32 x 8x8");
  all.add<Pair<Convolution<128>, Shape<3, 3, 128>, 32, bare::Convolution>>("conv_128", "Conv2D 128 to 128, 32 x 3x3");
  all.add<Pair<Convolution<256>, Shape<2, 2, 256>, 32, bare::Convolution>>("conv_256", "Conv2D 256 to 256, 32 x 2x2");
  all.add<Pair<Convolution<512>, Shape<1, 1, 512>, 32, bare::Convolution>>("conv_512", "Conv2D 512 to 512, 32 x 1x1");
  all.add<Pair<nn::Dense<128, nn::Relu>, Shape<21632>, 64, bare::Dense>>("dense", "Dense 21632 to 128, ReLU, 64");
  all.add<Pair<nn::Dense<1536>, Shape<384>, 2048, bare::Dense>>("dense_384_1536", "Dense 384 to 1536, 2048");
  all.add<Pair<nn::BatchNormalization<>, Shape<16, 16, 64>, 32, bare::BatchNormalization>>(
      "batch_norm", "BatchNormalization 64, 32 x 16x16");
  all.add<Pair<nn::MaxPool2D<3, 2, nn::Same>, Shape<16, 16, 64>, 32, bare::MaxPooling>>("max_pool",
                                                                                        "MaxPool2D 3/2, 32 x 16x16x64");
  all.add<Pair<nn::LayerNormalization<>, Shape<64, 256>, 32, bare::LayerNormalization>>(
      "layer_norm", "LayerNormalization 256, 32 x 64");
  all.add_alone<nn::MultiHeadAttention<6, 64, nn::AttendToPast>, Shape<256, 384>, 8>(
      "attention", "MultiHeadAttention, 6 heads of 64, causal, 8 x 256");
  return bench::compare_training_steps(
      argc, argv, all.contenders, all.quotients,
      {.title = "layers forward and backward, one thread, over bare oneDNN (at most 1.05)",
       .help =
           "Times layers with the oneDNN backend and bare oneDNN primitives, for all contenders in turns or for one.",
       .unit = "rows"});
}
