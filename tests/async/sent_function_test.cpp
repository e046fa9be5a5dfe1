#include <dist/async/sent_function.hpp>

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include <dist/nn/losses/huber.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/metrics/sparse_categorical_accuracy.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/schedules/exponential_decay.hpp>
#include <dist/nn/schedules/piecewise_constant.hpp>

namespace nn = dist::nn;

namespace {

/// As another process has it.
template <class F>
nn::SentFunction<F> sent(const F& function) {
  const auto bytes = dist::to_bytes(nn::SentFunction<F>{function});
  return dist::from_bytes<nn::SentFunction<F>>(bytes);
}

}  // namespace

TEST_CASE("optimizers travel with their options and schedules") {
  const auto adam = sent(nn::Adam{.learning_rate = 0.5F, .beta_1 = 0.25F, .amsgrad = true}).function;
  CHECK(adam.learning_rate == 0.5F);
  CHECK(adam.beta_1 == 0.25F);
  CHECK(adam.amsgrad);

  const auto with = sent(nn::With{nn::SGD{.learning_rate = 0.5F, .momentum = 0.75F}, nn::ClipNorm{2},
                                  nn::WeightDecay{0.125F, {"bias"}},
                                  nn::WarmUp{4, nn::PiecewiseConstant{{10, 20}, {1, 0.5F, 0.25F}}, 0.125F}})
                        .function;
  CHECK(with.momentum == 0.75F);
  CHECK(with.get<nn::ClipNorm>().norm == 2);
  CHECK(with.get<nn::WeightDecay>().rate == 0.125F);
  CHECK_FALSE(with.get<nn::WeightDecay>().applies_to("dense/bias"));
  CHECK(with.learning_rate_of(0) == 0.125F);
  CHECK(with.learning_rate_of(4 + 15) == 0.5F);
}

TEST_CASE("measures and losses travel with the texts to which they refer") {
  const auto of_auc = sent(nn::Auc{.thresholds = 7, .curve = nn::Auc::Curve::pr, .from_logits = true, .name = "area"});
  const nn::Auc auc = of_auc.function;
  CHECK(auc.thresholds == 7);
  CHECK(auc.curve == nn::Auc::Curve::pr);
  CHECK(auc.from_logits);
  CHECK(auc.name == "area");
  CHECK(sent(nn::MeanOf{nn::Huber{.delta = 3}}).function.loss.delta == 3);
  std::string name = "a name that is longer than a short text";
  const auto accuracy = sent(nn::SparseCategoricalAccuracy{.name = name});
  const auto copy = accuracy;
  name = "";
  CHECK(copy.function.name == "a name that is longer than a short text");
}

TEST_CASE("bytes that are none of the function are refused") {
  const std::vector<std::byte> bytes(3);
  CHECK_THROWS_AS((dist::from_bytes<nn::SentFunction<nn::Adam>>(bytes)), dist::ArchiveError);
}
