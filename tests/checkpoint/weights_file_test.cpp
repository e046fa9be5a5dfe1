#include <dist/checkpoint/weights_file.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/float16.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

using dist::Tensor;
using dist::detail::AnyTensor;
using dist::detail::Snapshot;
using dist::detail::WeightsFile;
using dist::detail::write_weights;
using dist::io::ElementType;

TEST_CASE("both formats store the tensors of a snapshot, and convert types when reading") {
  const support::TemporaryFolder folder;
  auto snapshot = Snapshot::of_first(true);
  snapshot.put("a/kernel", Tensor<float>{{2, 3}, {1, 2, 3, 4, 5, 6}});
  snapshot.put("epoch", Tensor<std::int64_t>{{}, {7}});
  for (const std::string name : {"weights.npz", "weights.safetensors"}) {
    CAPTURE(name);
    write_weights(folder.path(name), snapshot.local_tensors());
    const WeightsFile file{folder.path(name)};
    CHECK(file.names() == std::vector<std::string>{"a/kernel", "epoch"});
    const AnyTensor all = file.read("a/kernel", ElementType::f64);
    const auto kernel = all.view<double>();
    CHECK(kernel.shape() == dist::Shape{2, 3});
    CHECK(kernel[5] == 6);
    CHECK(file.read("epoch", ElementType::i32).view<std::int32_t>()[0] == 7);
    CHECK_THROWS_AS(static_cast<void>(file.read("b", ElementType::f32)), dist::FileError);
  }
}

TEST_CASE("the format follows from the extension") {
  const support::TemporaryFolder folder;
  const auto snapshot = Snapshot::of_first(true);
  CHECK_THROWS_WITH_AS(write_weights(folder.path("weights.bin"), snapshot.local_tensors()),
                       doctest::Contains("Use a name that ends in .safetensors or .npz"), dist::InvalidArgument);
  CHECK_THROWS_AS(WeightsFile{folder.path("weights")}, dist::InvalidArgument);
  CHECK(folder.names().empty());
}

TEST_CASE("the files of an index are one file, given by the index or its folder") {
  const support::TemporaryFolder folder;
  auto first = Snapshot::of_first(true), second = Snapshot::of_first(true);
  first.put("b", Tensor<float>{{2}, {1, 2}});
  first.put("unlisted", Tensor<float>{{1}, {0}});
  second.put("a", Tensor<float>{{1}, {3}});
  second.put("c", Tensor<float>{{1}, {4}});
  write_weights(folder.path("model-00001-of-00002.safetensors"), first.local_tensors());
  write_weights(folder.path("model-00002-of-00002.safetensors"), second.local_tensors());
  const std::string index = folder.write("model.safetensors.index.json",
                                         R"({"metadata": {"total_size": 16}, "weight_map": {
                                               "a": "model-00002-of-00002.safetensors",
                                               "b": "model-00001-of-00002.safetensors",
                                               "c": "model-00002-of-00002.safetensors"}})");
  for (const std::string& path : {index, folder.path()}) {
    const WeightsFile file{path};
    CHECK(file.path() == index);
    CHECK(file.names() == std::vector<std::string>{"a", "b", "c"});
    CHECK(file.read("b", ElementType::f64).view<double>()[1] == 2);
    CHECK(file.read("c", ElementType::f32).view<float>()[0] == 4);
    CHECK_THROWS_AS(static_cast<void>(file.read("d", ElementType::f32)), dist::FileError);
  }
  const auto refused = [&](const char* content, const std::string& why) {
    folder.write("model.safetensors.index.json", std::string_view{content});
    CHECK_THROWS_WITH_AS(WeightsFile{index}, doctest::Contains(why.c_str()), dist::FileError);
  };
  refused(R"({"weight_map": {"a": "model-00003-of-00003.safetensors"}})",
          "model-00003-of-00003.safetensors' cannot be opened (No such file or directory)");
  refused("[1, 2", "is not a valid index of weights (line 1");
  refused("[1, 2]", "it has no object 'weight_map'");
  refused(R"({"weight_map": {}})", "it has no object 'weight_map'");
  refused(R"({"weight_map": {"a": 1}})", "'a' has no file in the index's folder");
  refused(R"({"weight_map": {"a": "../model.safetensors"}})", "'a' has no file in the index's folder");
  folder.write("model.safetensors.index.json",
               std::string_view{R"({"weight_map": {"z": "model-00001-of-00002.safetensors"}})"});
  CHECK_THROWS_WITH_AS(static_cast<void>(WeightsFile{index}.read("z", ElementType::f32)), doctest::Contains("'z'"),
                       dist::FileError);
}

TEST_CASE("a folder without an index has model.safetensors") {
  const support::TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(WeightsFile{folder.path()}, doctest::Contains("/model.safetensors' cannot be opened"),
                       dist::FileError);
  auto snapshot = Snapshot::of_first(true);
  snapshot.put("a", Tensor<float>{{1}, {3}});
  write_weights(folder.path("model.safetensors"), snapshot.local_tensors());
  CHECK(WeightsFile{folder.path()}.names() == std::vector<std::string>{"a"});
}

TEST_CASE("NPZ does not support bfloat16, safetensors does") {
  const support::TemporaryFolder folder;
  auto snapshot = Snapshot::of_first(true);
  snapshot.put("kernel", Tensor<dist::BFloat16>{{1}, {dist::BFloat16(1.5F)}});
  CHECK_THROWS_WITH_AS(write_weights(folder.path("weights.npz"), snapshot.local_tensors()),
                       doctest::Contains("NPZ cannot hold 'kernel'"), dist::InvalidArgument);
  CHECK(folder.names().empty());
  write_weights(folder.path("weights.safetensors"), snapshot.local_tensors());
  CHECK(WeightsFile{folder.path("weights.safetensors")}.read("kernel", ElementType::f32).view<float>()[0] == 1.5F);
}

TEST_CASE("only the first process's snapshot has tensors") {
  auto snapshot = Snapshot::of_first(false);
  snapshot.put("kernel", Tensor<float>{{1}, {1}});
  snapshot.put_number("epoch", 1);
  CHECK(snapshot.local_tensors().empty());
}
