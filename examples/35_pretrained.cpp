// GPT-2 and BERT of Hugging Face's transformers: loads the weights that PyTorch saved, computes PyTorch's logits,
// trains a step, and saves the weights for transformers.
//
//   ./example_35_pretrained [folder [token id...]]
//
// Without a folder it uses two small models with random weights. The folder of a GPT-2 with 124 million weights has a
// file model.safetensors, such as https://huggingface.co/openai-community/gpt2, and continues the tokens.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights_like.hpp>
#include <dist/dist.hpp>
#include <dist/io/safetensors.hpp>
#include <dist/nn.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "pretrained.hpp"
#include "quick.hpp"

namespace {

namespace nn = dist::nn;

constexpr pretrained::Sizes small{.words = 60, .length = 12, .channels = 24, .heads = 3, .blocks = 2};
// [large]
constexpr pretrained::Sizes large{.words = 50257, .length = 64, .channels = 768, .heads = 12, .blocks = 12};
using LargeGpt2 = pretrained::Gpt2<large>;
// [/large]

double largest_difference(const dist::Tensor<float>& ours, const dist::Tensor<float>& theirs) {
  check(ours.shape() == theirs.shape(), "the logits have PyTorch's shape");
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) largest = std::fmax(largest, std::abs(double{ours[i]} - theirs[i]));
  return largest;
}

/// Compares logits with PyTorch's, before and after a step of training, and saves the weights.
template <class Net>
void compare(const std::filesystem::path& folder, const dist::LoadWeightsOptions& names) {
  const std::string file = folder / "model.safetensors";
  // [load]
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net, Backend> net{strategy};
  nn::Model model{strategy, net, nn::SGD{.learning_rate = 1.0F / 16}, nn::SparseCategoricalCrossentropy{}};
  dist::load_weights(strategy, net, file, names);
  // [/load]

  const dist::io::Safetensors expected{folder / "expected.safetensors"};
  const auto ids = expected.read_converted<float>("input_ids");
  const auto difference = [&](const char* tensor) {
    return largest_difference(model.predict_on_batch(ids), expected.read_converted<float>(tensor));
  };
  const double loaded = difference("logits");
  model.train_on_batch(ids, expected.read_converted<std::int32_t>("labels"));
  const double trained = difference("logits_after_step");
  std::printf("%s: logits differ from PyTorch's by at most %.1e, after a step of training by %.1e\n",
              folder.filename().c_str(), loaded, trained);
  check(loaded < 1e-4, "the loaded weights give PyTorch's logits");
  check(trained < 1e-4, "a step of training has PyTorch's result");

  const auto trained_folder = std::filesystem::temp_directory_path() / "dist_example_35" / folder.filename();
  std::filesystem::create_directories(trained_folder);
  // [save]
  dist::save_weights_like(strategy, net, trained_folder / "model.safetensors", file, names);
  // [/save]
  std::filesystem::copy_file(folder / "config.json", trained_folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  if (!quick()) std::printf("transformers' from_pretrained loads the trained model from %s\n", trained_folder.c_str());
  nn::Network<Net, Backend> saved{strategy};
  dist::load_weights(strategy, saved, trained_folder / "model.safetensors", names);
  for (const auto& each : net.layout())
    check(saved.parameter(strategy.scope(), each.name()) == net.parameter(strategy.scope(), each.name()),
          "the saved weights are those of the network");
}

/// Writes the most probable token after the tokens, ten times.
void continue_tokens(const std::string& file, const dist::LoadWeightsOptions& names, std::vector<int> tokens) {
  dist::Default strategy;
  nn::Network<LargeGpt2, Backend> net{strategy};
  nn::Model model{strategy, net, nn::SGD{}, nn::SparseCategoricalCrossentropy{}};
  dist::load_weights(strategy, net, file, names);
  for (int count = 0; count < 10 && tokens.size() < large.length; ++count) {
    dist::Tensor<float> ids{dist::Shape{1, large.length}};
    std::copy(tokens.begin(), tokens.end(), ids.data());  // later positions change nothing
    const auto logits = model.predict_on_batch(ids);
    const float* const next = logits.data() + (tokens.size() - 1) * large.words;
    tokens.push_back(static_cast<int>(std::max_element(next, next + large.words) - next));
  }
  for (const int token : tokens) std::printf("%d ", token);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1) {
    const std::filesystem::path folder = argv[1];
    const std::string file = folder / "model.safetensors";
    const bool is_of_openai = dist::io::Safetensors{file}.find("wte.weight") != nullptr;
    auto names = pretrained::gpt2_names(large, is_of_openai ? "" : "transformer.");
    names.ignore_superfluous = true;  // masks
    if (std::filesystem::exists(folder / "expected.safetensors")) {
      compare<LargeGpt2>(folder, names);
    } else {
      std::vector<int> tokens;
      for (int i = 2; i < argc; ++i) tokens.push_back(std::stoi(argv[i]));
      check(!tokens.empty() && tokens.size() < large.length, "there are 1 to 63 token ids");
      continue_tokens(file, names, tokens);
    }
    return 0;
  }
  const std::filesystem::path models = DIST_MODELS;
  compare<pretrained::Gpt2<small>>(models / "gpt2", pretrained::gpt2_names(small));
  compare<pretrained::Bert<small>>(models / "bert", pretrained::bert_names(small));
  if (quick()) std::filesystem::remove_all(std::filesystem::temp_directory_path() / "dist_example_35");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
