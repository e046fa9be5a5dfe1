#include <dist/checkpoint/load_weights.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <dist/checkpoint/save_weights.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/index_range.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/safetensors_writer.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/distributed_variable.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::FileError;
using dist::InvalidArgument;
using dist::LoadWeightsOptions;
using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::io::ElementType;
using support::what_throws;

namespace {

template <class S>
struct Parts {
  explicit Parts(S& strategy)
      : kernel(strategy.template variable<float, dist::OnWrite, dist::Mean>({2, 3}, 0.0F)),
        mean(strategy.template variable<double, dist::OnRead, dist::Mean>({}, 0.0)) {}
  void track(auto& visit) {
    visit("kernel", kernel);
    visit("mean", mean);
    visit("epoch", epoch);
  }
  dist::DistributedVariable<float, dist::OnWrite, dist::Mean> kernel;
  dist::DistributedVariable<double, dist::OnRead, dist::Mean> mean;
  std::int64_t epoch = 0;
};

/// A leaf that accepts any number of elements, and checks shapes itself.
struct List {
  [[nodiscard]] Tensor<float> whole(const auto&) const { return values; }
  void restore(const auto&, dist::TensorView<const float> given) { values = Tensor<float>{given}; }
  void require_restorable(const Shape& shape) const {
    if (shape.rank() != 1) throw ShapeMismatch("a list has one axis", "another number was given", "Give one");
  }
  Tensor<float> values{{1}, {0}};
};
struct OneList {
  void track(auto& visit) { visit("list", list); }
  List list;
};

/// Writes a file of another program: the kernel as [3, 2] in half precision, a mean, an epoch.
std::string theirs(const support::TemporaryFolder& folder, ElementType of_epoch = ElementType::u8) {
  const std::string path = folder.path("theirs.safetensors");
  dist::io::SafetensorsWriter file{
      path, {{"weight", ElementType::bf16, {3, 2}}, {"mean", ElementType::f32, {}}, {"epoch", of_epoch, {}}}};
  std::vector<dist::BFloat16> weight;
  for (const float value : {1.0F, 4.0F, 2.0F, 5.0F, 3.0F, 6.0F}) weight.emplace_back(value);
  file.append(std::span<const dist::BFloat16>{weight});
  file.append(Tensor<float>{{}, {0.5F}}.elements());
  if (of_epoch == ElementType::u8)
    file.append(Tensor<std::uint8_t>{{}, {7}}.elements());
  else
    file.append(Tensor<float>{{}, {7.5F}}.elements());
  file.commit();
  return path;
}
const LoadWeightsOptions fitting{.names = {{"kernel", "weight", {1, 0}}}};

/// True if nothing was loaded.
template <class S>
bool untouched(S& strategy, Parts<S>& parts) {
  auto scope = strategy.scope();
  return parts.kernel.whole(scope)[5] == 0 && parts.mean.whole(scope)[0] == 0 && parts.epoch == 0;
}

}  // namespace

TEST_CASE("names, axis orders and element types of the file are converted") {
  const support::TemporaryFolder folder;
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  Parts parts{strategy};
  CHECK(dist::load_weights(strategy, parts, theirs(folder), fitting).empty());
  strategy.run([&](const auto& replica) {
    for (std::size_t i = 0; i < 6; ++i) CHECK(parts.kernel.component(replica)[i] == static_cast<float>(i + 1));
  });
  CHECK(parts.mean.whole(strategy.scope())[0] == 0.5);
  CHECK(parts.epoch == 7);
}

TEST_CASE("saved weights are loaded in both formats") {
  const support::TemporaryFolder folder;
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  Parts parts{strategy};
  dist::load_weights(strategy, parts, theirs(folder), fitting);
  for (const std::string name : {"weights.npz", "weights.safetensors"}) {
    dist::save_weights(strategy, parts, folder.path(name));
    dist::Default other;
    Parts loaded{other};
    CHECK(dist::load_weights(other, loaded, folder.path(name)).empty());
    CHECK(loaded.kernel.whole(other.scope())[5] == 6);
    CHECK(loaded.mean.whole(other.scope())[0] == 0.5);
    CHECK(loaded.epoch == 7);
  }
}

TEST_CASE("a load that does not fit changes nothing and reports the reason") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  Parts parts{strategy};
  const std::string path = theirs(folder);
  const auto refusal = [&]<class E>(const LoadWeightsOptions& options, E*) {
    std::string said = what_throws<E>([&] { dist::load_weights(strategy, parts, path, options); });
    CHECK(untouched(strategy, parts));
    return said;
  };
  FileError* file_error = nullptr;
  ShapeMismatch* shape_mismatch = nullptr;
  InvalidArgument* invalid_argument = nullptr;

  CHECK(refusal({}, file_error).find("lacks weights: 'kernel' (it holds 'weight', 'mean', 'epoch')") !=
        std::string::npos);
  CHECK(refusal({.names = {{"kernel", "fc.weight"}, {"mean", "fc.mean"}}}, file_error)
            .find("lacks weights: 'fc.weight' for 'kernel', 'fc.mean' for 'mean'") != std::string::npos);
  CHECK(refusal({.keep = {"kernel"}}, file_error).find("has unused weights: 'weight'") != std::string::npos);
  CHECK(refusal({.names = {{"kernel", "weight"}}}, shape_mismatch).find("it is [2, 3], the file's is [3, 2]") !=
        std::string::npos);
  CHECK(refusal({.names = {{"kernel", "weight", {0, 1}}}}, shape_mismatch)
            .find("it is [2, 3], the file's is [3, 2] after the permutation of its axes") != std::string::npos);
  CHECK(refusal({.names = {{"kernel", "weight", {0, 2}}}}, invalid_argument).find("the order of axes is {0, 2}") !=
        std::string::npos);
  CHECK(refusal({.names = {{"kernel", "weight", {}, Shape{5}}}}, shape_mismatch).find("cannot be reshaped to [5]") !=
        std::string::npos);
  CHECK(refusal({.names = {{"kernel", "weight", {1, 0}}, {"bias", "mean"}}}, invalid_argument)
            .find("name 'bias', which is not a key (the keys are kernel, mean, epoch)") != std::string::npos);
  CHECK(refusal({.names = {{"kernel", "weight", {1, 0}}, {"kernel", "mean"}}}, invalid_argument)
            .find("LoadWeightsOptions::names has two sources for 'kernel'") != std::string::npos);
  CHECK(refusal({.names = {{"kernel", "weight", {1, 0}}}, .keep = {"bias"}}, invalid_argument).find("'bias'") !=
        std::string::npos);
  theirs(folder, ElementType::f32);  // with epoch 7.5
  CHECK(refusal(fitting, file_error).find("epoch") != std::string::npos);
  folder.write("theirs.safetensors", "no header");
  CHECK(refusal(fitting, file_error).find("is not a valid safetensors file") != std::string::npos);
}

TEST_CASE("keys may keep their values, and unused names may be ignored") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  Parts parts{strategy};
  CHECK(
      dist::load_weights(strategy, parts, theirs(folder), {.keep = {"kernel", "epoch"}, .ignore_superfluous = true}) ==
      std::vector<std::string>{"weight", "epoch"});
  CHECK(parts.mean.whole(strategy.scope())[0] == 0.5);
  CHECK(parts.kernel.whole(strategy.scope())[5] == 0);
  CHECK(parts.epoch == 0);
}

TEST_CASE("tensors may be reshaped") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  Parts parts{strategy};
  dist::load_weights(strategy, parts, theirs(folder), {.names = {{"kernel", "weight", {1, 0}, Shape{6, 1}}}});
  const auto kernel = parts.kernel.whole(strategy.scope());
  CHECK(std::vector<float>(kernel.data(), kernel.data() + 6) == std::vector<float>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("a range of rows may be loaded") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  OneList parts;
  const std::string path = theirs(folder);
  const auto load = [&](dist::IndexRange rows) {
    dist::load_weights(strategy, parts, path,
                       {.names = {{"list", "weight", {}, Shape{2}, rows}}, .ignore_superfluous = true});
  };
  load({1, 2});
  CHECK(parts.list.values[0] == 2);
  CHECK(parts.list.values[1] == 5);
  for (const dist::IndexRange rows : {dist::IndexRange{3, 4}, dist::IndexRange{2, 1}})
    CHECK(what_throws<ShapeMismatch>([&] { load(rows); }).find("(its shape is [3, 2])") != std::string::npos);
}

TEST_CASE("a leaf that checks shapes is checked before anything changes") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  OneList parts;
  parts.list.values = Tensor<float>{{3}, {1, 2, 3}};
  dist::save_weights(strategy, parts, folder.path("list.npz"));
  OneList loaded;
  dist::load_weights(strategy, loaded, folder.path("list.npz"));
  CHECK(loaded.list.values.shape() == Shape{3});
  CHECK_THROWS_AS(
      dist::load_weights(strategy, loaded, folder.path("list.npz"), {.names = {{"list", "list", {}, Shape{3, 1}}}}),
      ShapeMismatch);
  CHECK(loaded.list.values.shape() == Shape{3});
}

TEST_CASE("an optimizer's slots are found again after a layer was inserted") {
  namespace nn = dist::nn;
  using Before = nn::Sequential<nn::Input<4>, nn::Dense<3, nn::Relu>, nn::Dense<2>>;
  using After = nn::Sequential<nn::Input<4>, nn::Dense<3, nn::Relu>, nn::LayerNormalization<>, nn::Dense<2>>;
  const support::TemporaryFolder folder;
  dist::Mirrored<dist::ThreadAllReduce> three{3}, two{2};
  nn::Network<Before> before{three};
  nn::Optimizer optimizer{three, before, nn::SGD{.momentum = 0.9F}};
  three.run([&](auto& replica) {
    for (float& gradient : before.gradients().component(replica)) gradient = 1;
    optimizer.apply_gradients(replica);
  });
  const Tensor<float> kernel{{3, 2}, {1, 2, 3, 4, 5, 6}};
  optimizer.assign_slot(three.scope(), "momentum", "dense_1/kernel", kernel);
  dist::save_weights(three, optimizer, folder.path("optimizer.safetensors"));
  nn::Network<After> after{two};
  nn::Optimizer loaded{two, after, nn::SGD{.momentum = 0.9F}};
  dist::load_weights(two, loaded, folder.path("optimizer.safetensors"),
                     {.keep = {"momentum/layer_normalization/gamma", "momentum/layer_normalization/beta"}});
  CHECK(loaded.slot(two.scope(), "momentum", "dense_1/kernel") == kernel);
  CHECK(loaded.slot(two.scope(), "momentum", "layer_normalization/gamma") == Tensor<float>{{3}});
}
