#include <dist/train/model_files.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <support/saved.hpp>
#include <support/temporary_folder.hpp>

namespace nn = dist::nn;

namespace {

constexpr std::size_t rows = 24;

// With statistics, which inference needs in addition to the weights.
using Net = nn::Sequential<nn::Input<4>, nn::Dense<8, nn::Relu>, nn::BatchNormalization<nn::SynchronizedStatistics>,
                           nn::Dense<3>>;

dist::Tensor<float> features() {
  dist::Tensor<float> x{{rows, 4}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 5) % 7) - 3;
  return x;
}
auto examples() {
  dist::Tensor<std::int32_t> y{{rows}};
  for (std::size_t i = 0; i < rows; ++i) y[i] = static_cast<std::int32_t>(i % 3);
  return dist::data::tensor_slices(features(), y) | dist::data::shuffle(rows, 3) | dist::data::batch(6);
}

/// Calls `use` with a new model, whose weights depend on the seed.
template <class S>
void with_model(S& strategy, std::uint64_t seed, float rate, const auto& use) {
  nn::Network<Net> net{strategy, seed};
  nn::Model model{strategy, net, nn::Adam{.learning_rate = rate}, nn::SparseCategoricalCrossentropy{},
                  nn::SparseCategoricalAccuracy{}};
  use(model);
}

/// A model's logs and predictions for the examples.
struct Seen {
  explicit Seen(auto& model)
      : logs(model.evaluate(examples(), {.verbose = 0})), predicted(model.predict(features(), {.verbose = 0})) {}
  nn::Logs logs;
  dist::Tensor<float> predicted;
};
void check_equal(const Seen& seen, const Seen& expected) {
  CHECK(seen.logs["loss"] == expected.logs["loss"]);
  CHECK(seen.logs["accuracy"] == expected.logs["accuracy"]);
  REQUIRE(seen.predicted.size() == expected.predicted.size());
  bool is_equal = true;
  for (std::size_t i = 0; i < seen.predicted.size(); ++i) is_equal &= seen.predicted[i] == expected.predicted[i];
  CHECK(is_equal);
}
void check_alike(const Seen& seen, const Seen& expected) {
  CHECK(seen.logs["loss"] == doctest::Approx(expected.logs["loss"]).epsilon(1e-6));
  CHECK(seen.logs["accuracy"] == expected.logs["accuracy"]);
  for (std::size_t i = 0; i < seen.predicted.size(); ++i)
    CHECK(seen.predicted[i] == doctest::Approx(expected.predicted[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("a model restored from files evaluates and predicts the same, with and without a strategy (spec Q28)") {
  const support::TemporaryFolder folder;
  dist::Mirrored<dist::ThreadAllReduce> two{2};
  dist::Default none;
  with_model(two, 1, 0.01F, [&](auto& trained) {
    trained.fit(examples(), {.epochs = 3, .verbose = 0});
    const Seen expected{trained};
    const std::string files[] = {folder.path("net.safetensors"), folder.path("net.npz")};
    for (const std::string& file : files) {
      CAPTURE(file);
      trained.save_weights(file);
      with_model(two, 7, 0.01F, [&](auto& loaded) {
        CHECK(loaded.load_weights(file).empty());
        check_equal(Seen{loaded}, expected);
      });
      with_model(none, 8, 0.01F, [&](auto& loaded) {
        loaded.load_weights(file);
        check_alike(Seen{loaded}, expected);
      });
    }
    with_model(two, 7, 0.01F, [&](auto& loaded) {
      CHECK(loaded.load_weights(files[0], {.keep = {"dense_1/bias"}, .ignore_superfluous = true}) ==
            std::vector<std::string>{"dense_1/bias"});
      CHECK(loaded.evaluate(examples(), {.verbose = 0})["loss"] != expected.logs["loss"]);
    });
    trained.save(folder.path("model"));
    with_model(none, 8, 0.5F, [&](auto& loaded) {
      loaded.load(folder.path("model"));
      check_alike(Seen{loaded}, expected);
      CHECK(loaded.optimizer().learning_rate() == 0.01F);
    });
  });
}

TEST_CASE("a saved and loaded model trains on, bitwise identical to an uninterrupted one") {
  const support::TemporaryFolder folder;
  dist::Mirrored<dist::ThreadAllReduce> two{2};
  with_model(two, 1, 0.01F, [&](auto& trained) {
    trained.fit(examples(), {.epochs = 2, .verbose = 0});
    trained.save(folder.path("model"));
    with_model(two, 7, 0.5F, [&](auto& loaded) {
      loaded.load(folder.path("model"));
      loaded.fit(examples(), {.epochs = 2, .verbose = 0});
      trained.fit(examples(), {.epochs = 2, .verbose = 0});
      CHECK(support::Saved{two, loaded} == support::Saved{two, trained});
      CHECK_THROWS_AS(loaded.load(folder.path("nothing")), dist::FileError);
      CHECK_THROWS_AS(loaded.load_weights(folder.path("nothing.npz")), dist::FileError);
      CHECK_THROWS_AS(loaded.save_weights(folder.path("net.h5")), dist::InvalidArgument);
    });
  });
}
