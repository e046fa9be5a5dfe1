#include <dist/data/cifar.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/data/auto_shard.hpp>
#include <dist/data/dataset.hpp>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::Shape;
using dist::data::Cardinality;
using dist::data::cifar10;
using dist::data::cifar100;
using dist::data::CifarLabel;
using dist::data::Split;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::joined;

namespace {

/// A record of CIFAR, where pixel (row, column) of channel c is (row * 32 + column + 85 c + shift) mod 256.
Bytes record(std::initializer_list<unsigned> labels, unsigned shift = 0) {
  Bytes content = bytes(labels);
  for (unsigned channel = 0; channel < 3; ++channel)
    for (unsigned pixel = 0; pixel < 1024; ++pixel)
      content.push_back(static_cast<std::byte>((pixel + 85 * channel + shift) % 256));
  return content;
}

void refuse(const std::string& folder, Split split, const std::string& because) {
  CHECK_THROWS_WITH_AS(static_cast<void>(cifar10(folder, split)), doctest::Contains(because.c_str()), FileError);
}

}  // namespace

TEST_CASE("cifar10 reorders pixels from planar to interleaved channels") {
  support::TemporaryFolder folder;
  folder.write("test_batch.bin", joined({record({9}), record({0}, 7)}));
  const auto dataset = cifar10<std::uint8_t>(folder.path(), Split::test);
  CHECK(dataset.cardinality() == Cardinality::known(2));
  const auto examples = dist_test::collect(dataset);
  CHECK(examples[0].x.shape() == Shape{32, 32, 3});
  CHECK(examples[0].y.shape() == Shape{});
  CHECK(examples[0].y[0] == 9);
  CHECK(examples[1].y[0] == 0);
  bool equal = true;
  for (std::size_t image = 0; image < 2; ++image)
    for (std::size_t pixel = 0; pixel < 1024; ++pixel)
      for (std::size_t channel = 0; channel < 3; ++channel)
        equal &= examples[image].x[pixel * 3 + channel] == (pixel + 85 * channel + 7 * image) % 256;
  CHECK(equal);
}

TEST_CASE("cifar10 scales floats to [0, 1], and reads five files in order for training") {
  support::TemporaryFolder folder;
  for (unsigned file = 1; file <= 5; ++file)
    folder.write("data_batch_" + std::to_string(file) + ".bin",
                 joined({record({file}, file), record({file + 1}), record({file - 1})}));
  const auto dataset = cifar10(folder.path(), Split::train);
  const auto examples = dist_test::collect(dataset);
  REQUIRE(examples.size() == 15);
  std::vector<int> labels;
  for (const auto& example : examples) labels.push_back(example.y[0]);
  CHECK(labels == std::vector<int>{1, 2, 0, 2, 3, 1, 3, 4, 2, 4, 5, 3, 5, 6, 4});
  CHECK(examples[1].x[0] == 0.0F);
  CHECK(examples[1].x[1] == 85.0F / 255.0F);
  CHECK(examples[1].x[3 * 255] == 1.0F);
  CHECK(examples[3].x[0] == 2.0F / 255.0F);
}

TEST_CASE("cifar10 reads more records than its buffer holds") {
  support::TemporaryFolder folder;
  Bytes content;
  for (unsigned i = 0; i < 600; ++i) {
    const Bytes next = record({i % 10}, i);
    content.insert(content.end(), next.begin(), next.end());
  }
  folder.write("test_batch.bin", content);
  const auto dataset = cifar10<std::uint8_t>(folder.path(), Split::test);
  std::size_t i = 0;
  bool equal = true;
  for (const auto& [x, y] : dataset.epoch(0)) {
    equal &= y[0] == static_cast<int>(i % 10) && x[0] == i % 256 && x[3071] == (1023 + 170 + i) % 256;
    ++i;
  }
  CHECK(i == 600);
  CHECK(equal);
}

TEST_CASE("CIFAR-100 has two labels") {
  support::TemporaryFolder folder;
  folder.write("train.bin", joined({record({19, 99}), record({0, 1})}));
  const auto fine = cifar100<std::uint8_t>(folder.path(), Split::train);
  const auto coarse = cifar100(folder.path(), Split::train, CifarLabel::coarse);
  CHECK(dist_test::collect(fine)[0].y[0] == 99);
  CHECK(dist_test::collect(coarse)[0].y[0] == 19);
  CHECK(dist_test::collect(fine)[1].x[1] == 85);
  folder.write("test.bin", record({20, 99}));
  CHECK_THROWS_WITH_AS(static_cast<void>(cifar100(folder.path(), Split::test, CifarLabel::coarse)),
                       doctest::Contains("test.bin' has a label that is not a class (label 0 is 20, expected 0 to 19)"),
                       FileError);
}

TEST_CASE("invalid CIFAR files are rejected, naming the file") {
  support::TemporaryFolder folder;
  refuse(folder.path(), Split::test, "File '" + folder.path() + "/test_batch.bin' cannot be opened");
  const std::string file = folder.write("test_batch.bin", joined({record({1}), bytes({0})}));
  refuse(
      folder.path(), Split::test,
      "File '" + file +
          "' does not hold records of CIFAR (it has 3074 bytes, expected 1 to 1000000 records of 3073 bytes). Give the "
          "folder cifar-10-batches-bin");
  folder.write("test_batch.bin", "");
  refuse(folder.path(), Split::test, "it has 0 bytes");
  folder.write("test_batch.bin", joined({record({3}), record({10})}));
  refuse(folder.path(), Split::test, "has a label that is not a class (label 1 is 10, expected 0 to 9)");
  folder.write("data_batch_1.bin", record({3}));
  refuse(folder.path(), Split::train, "data_batch_2.bin' cannot be opened");
}

TEST_CASE("CIFAR images support resumed passes and sharding") {
  support::TemporaryFolder folder;
  folder.write("test_batch.bin", joined({record({0}), record({1}), record({2}), record({3}), record({4})}));
  const auto dataset = cifar10(folder.path(), Split::test);
  auto pass = dataset.iterate(0);
  static_assert(dist::data::Resumable<decltype(pass)>);
  pass.seek(3);
  decltype(dataset)::Element element{};
  CHECK(pass.next(element));
  CHECK(element.y[0] == 3);
  CHECK(pass.position() == 4);
  const auto shard = dist::data::auto_shard(dataset, dist::data::AutoShardPolicy::automatic, 2, 1);
  std::vector<int> labels;
  for (const auto& example : shard.epoch(0)) labels.push_back(example.y[0]);
  CHECK(labels == std::vector<int>{1, 3});
}
