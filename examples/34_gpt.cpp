// A small GPT: learns to predict the next character of a text, then writes text. The strategy is one type.
//
//   ./example_34_gpt [mirrored|central|workers|servers|tpu] [text file]
//
// Without a file it learns the licenses that Debian installs in /usr/share/common-licenses. For two processes: mpirun -n
// 2 ./example_34_gpt workers
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster.hpp>
#include <dist/coordinator/local_job.hpp>
#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/multi_worker.hpp>
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"
#include "tpu.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

// [network]
/// Each character attends to itself and the characters before it, by distance.
struct Causal : nn::AttendToPast {
  using Positions = nn::RotaryPositions<>;
};
template <class Body>
using WithNorm = nn::Residual<nn::Sequential<nn::LayerNormalization<>, Body>>;
/// Attention and a feed-forward part, as wide as their input.
template <std::size_t Heads>
struct Block {
  template <class In>
  using Layers =
      nn::Sequential<WithNorm<nn::MultiHeadAttention<Heads, In::last_extent / Heads, Causal>>,
                     WithNorm<nn::Sequential<nn::Dense<4 * In::last_extent, nn::Gelu>, nn::Dense<In::last_extent>>>>;
};

constexpr std::size_t words = 128;  // at least the number of different characters

/// The last layer multiplies by the vectors of the characters.
template <std::size_t Context, std::size_t Channels, std::size_t Blocks, std::size_t Heads>
using Gpt =
    nn::Sequential<nn::Input<Context>, nn::Named<"characters", nn::Embedding<words, Channels, nn::GlorotUniform>>,
                   nn::Named<"blocks", nn::Repeat<Blocks, Block<Heads>>>, nn::LayerNormalization<>,
                   nn::Unembed<"characters">>;
// [/network]

using SmallGpt = Gpt<64, 64, /*Blocks=*/2, /*Heads=*/4>;
using LargeGpt = Gpt<256, 384, /*Blocks=*/6, /*Heads=*/6>;

std::string text_of(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path))
    for (const auto& entry : std::filesystem::directory_iterator{path})
      if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  if (files.empty()) files.push_back(path);
  std::sort(files.begin(), files.end());
  std::ostringstream text;
  for (const auto& file : files) text << std::ifstream{file}.rdbuf();
  return std::move(text).str();
}

// [data]
/// Examples of `context` characters as float ids, and the character after each of them.
auto windows(const std::vector<std::int32_t>& tokens, std::size_t context, std::uint64_t seed = 0) {
  return data::token_windows(tokens, context) | data::index_shuffle(seed) | data::map([](const auto& window) {
           dist::Tensor<float> ids{window.x.shape()};
           std::copy_n(window.x.data(), ids.size(), ids.data());
           return data::Example{std::move(ids), window.y};
         });
}
// [/data]

// [generate]
/// Continues a text by `count` characters, which are drawn with the probabilities that the model predicts.
std::string generate(auto& model, const data::CharacterLookup& characters, std::size_t context, std::string text,
                     std::size_t count, std::uint64_t seed) {
  const dist::RandomStream random{seed};
  for (std::size_t i = 0; i < count; ++i) {
    const auto ids = characters.encode(text.size() > context ? text.substr(text.size() - context) : text);
    dist::Tensor<float> x{dist::Shape{1, context}};
    std::fill_n(x.data(), context, 0.0F);
    std::copy_n(ids.data(), ids.size(), x.data());
    const auto logits = model.predict_on_batch(x);
    const float* const next = logits.data() + (ids.size() - 1) * words;
    std::vector<double> sums;
    for (std::size_t word = 0; word < characters.size(); ++word)
      sums.push_back((word == 0 ? 0 : sums.back()) + std::exp(static_cast<double>(next[word])));
    const double drawn = random.uniform<double>(i) * sums.back();
    const auto word = std::upper_bound(sums.begin(), sums.end() - 1, drawn) - sums.begin();
    text += characters.decode(std::vector{static_cast<std::int32_t>(word)});
  }
  return text;
}
// [/generate]

std::string text_file = "/usr/share/common-licenses";

struct Text {
  Text() {
    const std::string text = text_of(text_file);
    characters.adapt(text);
    check(characters.size() <= words, "the network has a word for each character");
    tokens = characters.encode(text);
    std::vector<double> counts(words);
    for (const std::int32_t token : tokens) ++counts[static_cast<std::size_t>(token)];
    const auto all = static_cast<double>(tokens.size());
    for (const double count : counts)
      if (count > 0) entropy -= count / all * std::log(count / all);
  }
  data::CharacterLookup characters;
  std::vector<std::int32_t> tokens;
  double entropy = 0;  // the loss of predictions by the frequencies of the characters
};

std::size_t batch_size() { return quick() ? 8 : 32; }

/// Calls `use(model)` with a model of the network on a strategy.
template <class Net, class Layers = Backend>
void with_model(auto& strategy, const auto& use) {
  nn::Network<Net, Layers> net{strategy, /*seed=*/1};
  nn::Model model{strategy, net, nn::AdamW{.learning_rate = quick() ? 5e-3F : 1e-3F, .weight_decay = 0.1F},
                  nn::SparseCategoricalCrossentropy{}};
  use(model);
}

/// Trains by `fit(model)`, which returns the history, and writes text.
template <class Net, class Layers = Backend>
void train(auto& strategy, const Text& text, const auto& fit) {
  constexpr std::size_t context = Net::InputShape::elements;
  with_model<Net, Layers>(strategy, [&](auto& model) {
    if (model.is_chief()) std::printf("%s\n", strategy.describe().c_str());
    const double loss = fit(model)["loss"].back();
    const auto written = [&] { return generate(model, text.characters, context, "The ", 64, /*seed=*/3); };
    const std::string first = written();
    if (model.is_chief()) std::printf("loss %.3f; %s\n", loss, first.c_str());
    check(loss < 0.93 * text.entropy, "the network predicts better than by the frequencies of the characters");
    check(first == written(), "the same seed gives the same text");
  });
}

constexpr std::size_t epochs = 3;
std::size_t steps() { return quick() ? 50 : 500; }

template <class Net>
void run(std::string_view kind, const Text& text) {
  const auto fit = [&](auto& model) {
    return model.fit(windows(text.tokens, Net::InputShape::elements) | data::batch(batch_size()),
                     {.epochs = epochs, .steps_per_epoch = steps(), .verbose = 2});
  };
  // [strategies]
  if (kind == "workers") {
    dist::MultiWorker<dist::RingAllReduce> strategy;
    train<Net>(strategy, text, fit);
  } else if (kind == "central") {
    dist::CentralStorage<dist::Cpu> strategy{2};
    train<Net>(strategy, text, fit);
  } else if (kind == "tpu") {
    with_tpu([&]<class Layers>(auto& strategy) { train<Net, Layers>(strategy, text, fit); });
  } else {
    dist::Mirrored<dist::ThreadAllReduce> strategy{2};
    train<Net>(strategy, text, fit);
  }
  // [/strategies]
}

void run_on_servers(const Text& text) {
  // [servers]
  const dist::LocalJob job{/*parameter_servers=*/2, /*workers=*/2};
  dist::ParameterServer<dist::Local> strategy{job.resolver()};
  train<SmallGpt>(strategy, text, [&](auto& model) {
    // Each worker reads the text itself, in another order.
    const auto examples = [](const dist::InputContext& worker) {
      return windows(Text{}.tokens, SmallGpt::InputShape::elements, worker.input_pipeline_id()) |
             data::batch(batch_size());
    };
    return model.fit(examples, {.epochs = epochs, .steps_per_epoch = steps(), .verbose = 2});
  });
  // [/servers]
}

/// The losses of the first steps.
std::vector<double> losses_on(auto strategy, const Text& text) {
  std::vector<double> losses;
  with_model<SmallGpt>(*strategy, [&](auto& model) {
    for (const auto& batch : windows(text.tokens, 64) | data::batch(batch_size()) | data::take(3))
      losses.push_back(model.train_on_batch(batch.x, batch.y)["loss"]);
  });
  return losses;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view kind = argc > 1 ? argv[1] : "mirrored";
  if (argc > 2) text_file = argv[2];
  const Text text;
  if (kind == "servers") {
    run_on_servers(text);
  } else if (!quick()) {
    run<LargeGpt>(kind, text);
  } else {
    run<SmallGpt>(kind, text);
  }
  if (!quick() || kind != "mirrored") return 0;
  const auto one = losses_on(std::make_unique<dist::Default>(), text);
  const auto two = losses_on(std::make_unique<dist::Mirrored<dist::ThreadAllReduce>>(2), text);
  for (std::size_t step = 0; step < one.size(); ++step)
    check(std::abs(one[step] - two[step]) < 1e-4, "two replicas compute the losses of one");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
