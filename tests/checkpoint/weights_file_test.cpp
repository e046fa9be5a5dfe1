#include <dist/checkpoint/weights_file.hpp>

#include <cstdint>
#include <string>
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
    write_weights(folder.path(name), snapshot);
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
  CHECK_THROWS_WITH_AS(write_weights(folder.path("weights.bin"), snapshot),
                       doctest::Contains("Use a name that ends in .safetensors or .npz"), dist::InvalidArgument);
  CHECK_THROWS_AS(WeightsFile{folder.path("weights")}, dist::InvalidArgument);
  CHECK(folder.names().empty());
}

TEST_CASE("NPZ does not support bfloat16, safetensors does") {
  const support::TemporaryFolder folder;
  auto snapshot = Snapshot::of_first(true);
  snapshot.put("kernel", Tensor<dist::BFloat16>{{1}, {dist::BFloat16(1.5F)}});
  CHECK_THROWS_WITH_AS(write_weights(folder.path("weights.npz"), snapshot),
                       doctest::Contains("NPZ cannot hold 'kernel'"), dist::InvalidArgument);
  CHECK(folder.names().empty());
  write_weights(folder.path("weights.safetensors"), snapshot);
  CHECK(WeightsFile{folder.path("weights.safetensors")}.read("kernel", ElementType::f32).view<float>()[0] == 1.5F);
}

TEST_CASE("only the first process's snapshot has tensors") {
  auto snapshot = Snapshot::of_first(false);
  snapshot.put("kernel", Tensor<float>{{1}, {1}});
  snapshot.put_number("epoch", 1);
  CHECK(snapshot.local_tensors().empty());
}
