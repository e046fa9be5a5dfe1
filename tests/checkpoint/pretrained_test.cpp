// Models of transformers, with the names of their weights in the files that save_pretrained writes.
#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights_like.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/safetensors.hpp>
#include <dist/nn.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

#include "../../examples/pretrained.hpp"

namespace nn = dist::nn;

namespace {

constexpr pretrained::Sizes sizes{.words = 60, .length = 12, .channels = 24, .heads = 3, .blocks = 2};
using Gpt2 = pretrained::Gpt2<sizes>;
using Bert = pretrained::Bert<sizes>;

/// A model in double, and the numbers that PyTorch computes for it.
template <class Net>
class Pretrained {
 public:
  Pretrained(const std::string& folder, dist::LoadWeightsOptions names)
      : folder_(DIST_SOURCE_DIR "/tests/checkpoint/torch/" + folder + "/"), names_(std::move(names)) {}

  /// The largest difference of the logits to a tensor of PyTorch.
  double difference(const std::string& tensor) {
    const auto ours = model_.predict_on_batch(expected_.template read_converted<double>("input_ids"));
    const auto theirs = expected_.template read<double>(tensor);
    REQUIRE(ours.shape() == theirs.shape());
    double largest = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) largest = std::fmax(largest, std::abs(ours[i] - theirs[i]));
    return largest;
  }
  void load(const dist::LoadWeightsOptions& names) { dist::load_weights(strategy_, network_, file(), names); }

  void check() {
    load(names_);
    CHECK(difference("logits") < 1e-9);
    const support::TemporaryFolder folder;
    const std::string saved = folder.path("saved.safetensors");
    dist::save_weights_like(strategy_, network_, saved, file(), names_);
    const dist::io::Safetensors<> before{file()}, after{saved};
    for (const auto& entry : before.entries()) CHECK(after.read<float>(entry.name) == before.read<float>(entry.name));

    CHECK(difference("logits_after_step") > 0.5);
    model_.train_on_batch(expected_.template read_converted<double>("input_ids"),
                          expected_.template read_converted<std::int32_t>("labels"));
    CHECK(difference("logits_after_step") < 1e-9);
  }

  /// Checks that the logits differ if two names are exchanged, or the order of axes is missing.
  void check_wrong_names() {
    std::size_t loaded = 0;
    const auto check_differs = [&](const dist::LoadWeightsOptions& names) {
      try {
        load(names);
      } catch (const dist::ShapeMismatch&) {
        return;
      }
      ++loaded;
      CHECK(difference("logits") > 1e-3);
    };
    const std::size_t count = names_.names.size();
    for (std::size_t i = 0; i < count; ++i) {
      CAPTURE(names_.names[i].ours);
      for (std::size_t j = i + 1; j < count; ++j) {
        CAPTURE(names_.names[j].ours);
        if (numbered(names_.names[i]) != numbered(names_.names[j])) continue;
        dist::LoadWeightsOptions swapped = names_;
        std::swap(swapped.names[i].ours, swapped.names[j].ours);
        check_differs(swapped);
      }
      if (names_.names[i].axes.empty()) continue;
      dist::LoadWeightsOptions in_order = names_;
      in_order.names[i].axes.clear();
      check_differs(in_order);
    }
    CHECK(loaded > 20);
  }

 private:
  [[nodiscard]] std::string file() const { return folder_ + "model.safetensors"; }
  static bool numbered(const dist::WeightSource& source) { return source.ours.find("{}") != std::string::npos; }

  std::string folder_;
  dist::LoadWeightsOptions names_;
  dist::io::Safetensors<> expected_{folder_ + "expected.safetensors"};
  dist::Default strategy_;
  nn::Network<Net, nn::Reference, double> network_{strategy_};
  nn::Model<dist::Default, nn::Network<Net, nn::Reference, double>, nn::SGD, nn::SparseCategoricalCrossentropy> model_{
      strategy_, network_, nn::SGD{.learning_rate = 1.0F / 16}, nn::SparseCategoricalCrossentropy{}};
};

}  // namespace

TEST_CASE("a GPT-2 of transformers has PyTorch's logits, also after a step of training") {
  Pretrained<Gpt2>{"gpt2", pretrained::gpt2_names(sizes)}.check();
}

TEST_CASE("a BERT of transformers has PyTorch's logits, also after a step of training") {
  Pretrained<Bert>{"bert", pretrained::bert_names(sizes)}.check();
}

TEST_CASE("with a weight in the wrong place the logits differ") {
  Pretrained<Gpt2>{"gpt2", pretrained::gpt2_names(sizes)}.check_wrong_names();
  Pretrained<Bert>{"bert", pretrained::bert_names(sizes)}.check_wrong_names();
}
