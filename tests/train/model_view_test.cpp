#include <dist/train/model_view.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dist/checkpoint/load_weights.hpp>

#include "callbacks/small_model.hpp"

namespace nn = dist::nn;

namespace {

/// A callback for models of any type.
struct Halves {
  float last = 0;
  void on_epoch_end(nn::ModelView& model, const nn::Epoch&, nn::Logs&) {
    model.set_learning_rate(model.learning_rate() / 2);
    last = model.learning_rate();
    model.stop_training();
  }
};

}  // namespace

TEST_CASE("a callback reads and changes a type-erased model") {
  small::Model small{1, 0.5F};
  Halves halves;
  const nn::History history = small.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, halves);
  CHECK(history.epochs().size() == 1);
  CHECK(halves.last == 0.25F);
  const nn::ModelView& view = small.model;
  CHECK(view.iterations() == 4);
  CHECK(view.metric_names() == "loss, accuracy");
  CHECK(view.better("loss") == nn::Better::less);
  CHECK(view.better("unknown") == std::nullopt);
  CHECK(view.shows_batches());
  CHECK(view.is_chief());
}

TEST_CASE("an object shared by callbacks lives as long as one of them holds it") {
  small::Model small;
  int made = 0;
  const auto make = [&] { return std::make_shared<int>(++made); };
  std::shared_ptr<void> first = small.model.shared_by_callbacks("a", make);
  CHECK(small.model.shared_by_callbacks("a", make) == first);
  CHECK(small.model.shared_by_callbacks("b", make) != first);
  first.reset();
  const auto again = small.model.shared_by_callbacks("a", make);
  CHECK(*static_cast<int*>(again.get()) == 3);
}

namespace {

struct Noted : dist::nn::detail::HasModelFiles<Noted> {
  std::vector<std::string> calls;
};

}  // namespace

/// Records the called function.
template <>
struct dist::nn::detail::ModelFiles<Noted> {
  static void save(Noted& model, const std::string& path) { model.calls.push_back("save " + path); }
  static void load(Noted& model, const std::string& path) { model.calls.push_back("load " + path); }
  static void save_weights(Noted& model, const std::string& path) { model.calls.push_back("save_weights " + path); }
  static std::vector<std::string> load_weights(Noted&, const std::string& path) { return {path}; }
  static std::vector<std::string> load_weights(Noted&, const std::string& path, const LoadWeightsOptions& options) {
    return {path, options.keep.at(0)};
  }
};

TEST_CASE("HasModelFiles calls the included ModelFiles with the model and the path") {
  Noted model;
  model.save("a");
  model.load("b");
  model.save_weights("c");
  CHECK(model.calls == std::vector<std::string>{"save a", "load b", "save_weights c"});
  CHECK(model.load_weights("d") == std::vector<std::string>{"d"});
  CHECK(model.load_weights("e", {.keep = {"seed"}}) == std::vector<std::string>{"e", "seed"});
}
