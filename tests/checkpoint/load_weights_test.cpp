#include <dist/checkpoint/load_weights.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dist/checkpoint/save_weights.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/index_range.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/safetensors_writer.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/repeat.hpp>
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
struct OneKey {
  void track(auto& visit) { visit(key, list); }
  std::string key;
  List list;
};

/// A leaf of shape [2, 2].
struct Matrix {
  [[nodiscard]] Shape shape() const { return values.shape(); }
  [[nodiscard]] Tensor<float> whole(const auto&) const { return values; }
  void restore(const auto&, dist::TensorView<const float> given) { values = Tensor<float>{given}; }
  Tensor<float> values{{2, 2}};
};
/// Two of the blocks of a network.
struct Blocks {
  struct Block {
    Matrix query, key;
    std::int64_t seed = 1;
    void track(auto& visit) {
      visit("attention/query", query);
      visit("attention/key", key);
      visit("seed", seed);
    }
  };
  Block first, tenth;
  void track(auto& visit) {
    visit("h0", first);
    visit("h10", tenth);
  }
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
            .find("name 'bias', which matches no key (the keys are kernel, mean, epoch)") != std::string::npos);
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

TEST_CASE("a range along another axis may be loaded") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  OneList parts;
  const std::string path = folder.path("file.safetensors");
  dist::io::SafetensorsWriter file{path, {{"weight", ElementType::f32, {2, 3, 2}}}};
  file.append(Tensor<float>{{12}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}.elements());
  file.commit();
  const auto load = [&](std::size_t axis, dist::IndexRange rows) {
    const Shape list{12 / Shape{2, 3, 2}[axis] * rows.size()};
    dist::load_weights(
        strategy, parts, path,
        {.names = {{.ours = "list", .theirs = "weight", .seen_as = list, .rows = rows, .rows_axis = axis}}});
    return parts.list.values;
  };
  CHECK(load(0, {1, 2}) == Tensor<float>{{6}, {6, 7, 8, 9, 10, 11}});
  CHECK(load(1, {1, 3}) == Tensor<float>{{8}, {2, 3, 4, 5, 8, 9, 10, 11}});
  CHECK(load(2, {1, 2}) == Tensor<float>{{6}, {1, 3, 5, 7, 9, 11}});
  CHECK(load(2, {1, 1}) == Tensor<float>{{0}});
  CHECK(what_throws<ShapeMismatch>([&] {
          load(1, {2, 4});
        }).find("'weight' of the file '" + path + "' has no range 2 to 4 along axis 1 (its shape is [2, 3, 2])") !=
        std::string::npos);
  const auto no_axis = [&] {
    dist::load_weights(
        strategy, parts, path,
        {.names = {{.ours = "list", .theirs = "weight", .rows = dist::IndexRange{0, 1}, .rows_axis = 3}}});
  };
  CHECK(what_throws<ShapeMismatch>(no_axis).find("has no axis 3 (its shape is [2, 3, 2])") != std::string::npos);
}

TEST_CASE("one name covers all blocks, such as the parts of GPT-2's fused projection") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  const std::string path = folder.path("file.safetensors");
  dist::io::SafetensorsWriter file{path,
                                   {{"transformer.h.0.attn.c_attn.weight", ElementType::f32, {2, 6}},
                                    {"transformer.h.10.attn.c_attn.weight", ElementType::f32, {2, 6}}}};
  std::vector<float> weights(24);
  for (std::size_t i = 0; i < 24; ++i) weights[i] = static_cast<float>(i);
  file.append(std::span<const float>{weights}.first(12));
  file.append(std::span<const float>{weights}.last(12));
  file.commit();
  const auto part = [](const char* name, std::size_t begin,
                       const char* theirs = "transformer.h.{}.attn.c_attn.weight") {
    return dist::WeightSource{.ours = std::string{"h{}/attention/"} + name,
                              .theirs = theirs,
                              .rows = dist::IndexRange{begin, begin + 2},
                              .rows_axis = 1};
  };
  Blocks blocks;
  dist::load_weights(strategy, blocks, path, {.names = {part("query", 0), part("key", 2)}, .keep = {"h{}/seed"}});
  CHECK(blocks.first.query.values == Tensor<float>{{2, 2}, {0, 1, 6, 7}});
  CHECK(blocks.first.key.values == Tensor<float>{{2, 2}, {2, 3, 8, 9}});
  CHECK(blocks.tenth.query.values == Tensor<float>{{2, 2}, {12, 13, 18, 19}});
  CHECK(blocks.tenth.key.values == Tensor<float>{{2, 2}, {14, 15, 20, 21}});
  CHECK(blocks.tenth.seed == 1);

  const auto refusal = [&]<class E>(std::vector<dist::WeightSource> names, E*) {
    Blocks untouched;
    std::string said = what_throws<E>(
        [&] { dist::load_weights(strategy, untouched, path, {.names = std::move(names), .keep = {"h{}/seed"}}); });
    CHECK(untouched.first.query.values == Tensor<float>{{2, 2}});
    return said;
  };
  InvalidArgument* invalid_argument = nullptr;
  FileError* file_error = nullptr;
  CHECK(refusal({part("query", 0), part("key", 2), part("value", 4)}, invalid_argument)
            .find("name 'h{}/attention/value', which matches no key (the keys are h0/attention/query, ") !=
        std::string::npos);
  CHECK(refusal({part("query", 0), part("key", 2, "weight")}, invalid_argument)
            .find("than the other one ('h{}/attention/key' has 1, 'weight' has 0)") != std::string::npos);
  CHECK(refusal({part("query", 0), part("key", 2), {"h10/attention/key", "weight"}}, invalid_argument)
            .find("two sources for 'h10/attention/key' ('transformer.h.{}.attn.c_attn.weight' and 'weight')") !=
        std::string::npos);
  CHECK(refusal({part("query", 0), part("key", 2, "h.{}.weight")}, file_error)
            .find("lacks weights: 'h.0.weight' for 'h0/attention/key', 'h.10.weight' for 'h10/attention/key'") !=
        std::string::npos);
}

TEST_CASE("one name covers the blocks of a Repeat") {
  namespace nn = dist::nn;
  using Dense = nn::Dense<2, nn::Linear, nn::GlorotUniform, nn::NoBias>;
  using Net = nn::Sequential<nn::Input<2>, nn::Named<"h", nn::Repeat<11, Dense>>>;
  using Other = nn::Sequential<nn::Input<2>, nn::Repeat<11, nn::Named<"weight", Dense>>>;
  const support::TemporaryFolder folder;
  dist::Default strategy;
  const std::string path = folder.path("file.safetensors");
  nn::Network<Net> net{strategy, 1};
  nn::Network<Other> other{strategy, 2};
  dist::save_weights(strategy, net, path);
  dist::load_weights(strategy, other, path, {.names = {{"repeat/{}/weight/kernel", "h/{}/dense/kernel"}}});
  for (const auto block : {"0", "3", "10"})
    CHECK(other.parameter(strategy.scope(), std::string{"repeat/"} + block + "/weight/kernel") ==
          net.parameter(strategy.scope(), std::string{"h/"} + block + "/dense/kernel"));
}

TEST_CASE("a number in a name is one or more digits in its place") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  const auto matches = [&](std::string key, std::string pattern) {
    CAPTURE(pattern);
    OneKey saved{std::move(key), {}}, loaded{saved.key, {}};
    saved.list.values[0] = 2;
    dist::save_weights(strategy, saved, folder.path("key.npz"));
    const std::string said = what_throws<InvalidArgument>([&] {
      dist::load_weights(strategy, loaded, folder.path("key.npz"), {.names = {{pattern, pattern}}});
    });
    CHECK((said.find("which matches no key") == std::string::npos) == (loaded.list.values[0] == 2));
    return loaded.list.values[0] == 2;
  };
  CHECK(matches("h12/kernel", "h{}/kernel"));
  CHECK(matches("a1/b20/c", "a{}/b{}/c"));
  CHECK(matches("kernel_3", "kernel_{}"));
  CHECK(matches("kernel", "kernel"));
  CHECK(!matches("dense/kernel", "dense_{}/kernel"));
  CHECK(!matches("h/kernel", "h{}/kernel"));
  CHECK(!matches("h1/kernel/0", "h{}/kernel"));
  CHECK(!matches("xh1", "h{}"));
}

TEST_CASE("the files of an index are loaded as one") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  Parts parts{strategy};
  dist::load_weights(strategy, parts, theirs(folder), fitting);
  dist::save_weights(strategy, parts, folder.path("a.safetensors"));
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"kernel": "a.safetensors", "mean": "a.safetensors", "epoch": "a.safetensors"}})");
  Parts loaded{strategy};
  dist::load_weights(strategy, loaded, folder.path());
  CHECK(loaded.kernel.whole(strategy.scope())[5] == 6);
  CHECK(loaded.epoch == 7);
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
