#include <dist/data/image_folder.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <dist/data/auto_shard.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/images.hpp>

#include <data/sequences.hpp>
#include <support/temporary_folder.hpp>

namespace data = dist::data;
using data::image_folder;
using dist::FileError;
using dist::Tensor;
using dist_test::collect;
using dist_test::values;

namespace {

/// A format with one row of pixels, the bytes of the file.
struct Row {
  static constexpr std::string_view extensions[] = {"row", "line"};
  static Tensor<std::uint8_t> decode(std::span<const std::byte> bytes, std::size_t channels, const std::string& name,
                                     std::size_t max_elements) {
    if (bytes.size() > max_elements) throw FileError(name, "is too large", "", "");
    Tensor<std::uint8_t> pixels{{1, bytes.size() / channels, channels}};
    if (!bytes.empty()) std::memcpy(pixels.data(), bytes.data(), bytes.size());
    return pixels;
  }
};
/// A format with one row of pixels, the bytes of the file in reverse order.
struct Reverse {
  static constexpr std::string_view extensions[] = {"rev"};
  static Tensor<std::uint8_t> decode(std::span<const std::byte> bytes, std::size_t channels, const std::string& name,
                                     std::size_t max_elements) {
    std::vector<std::byte> reversed(bytes.rbegin(), bytes.rend());
    return Row::decode(reversed, channels, name, max_elements);
  }
};

/// The label and the first byte of each image in a pass.
std::vector<int> labels_and_firsts(const auto& dataset) {
  std::vector<int> found;
  for (const auto& example : dataset.epoch(0)) {
    found.push_back(example.y);
    found.push_back(static_cast<int>(example.x[0]));
  }
  return found;
}

/// A format of reversed rows, with a signature.
struct Signed : Reverse {
  static constexpr std::string_view extensions[] = {"signed"};
  static constexpr std::string_view signature = "SGN";
};

}  // namespace

TEST_CASE("a matching signature takes precedence over the file extension") {
  const support::TemporaryFolder folder;
  folder.write("a/1.row", "SGN\x09\x08\x07");
  folder.write("a/2.row", "SG\x06");
  folder.write("a/3.signed", "\x01\x02\x03");
  CHECK(labels_and_firsts(image_folder<std::uint8_t, Row, Signed>(folder.path())) ==
        std::vector<int>{0, 7, 0, 'S', 0, 3});
  CHECK(labels_and_firsts(image_folder<std::uint8_t, Signed, Row>(folder.path())) ==
        std::vector<int>{0, 7, 0, 'S', 0, 3});
}

TEST_CASE("classes and images are sorted by name") {
  const support::TemporaryFolder folder;
  folder.write("dog/b.row", "\x05\x05\x05");
  folder.write("dog/a.LINE", "\x04\x04\x04");
  folder.write("cat/10.row", "\x01\x01\x01");
  folder.write("cat/9.rev", "\x07\x08\x02");
  folder.write("cat/.hidden", "");
  folder.write(".thumbnails/c.row", "");
  folder.write("readme.txt", "");
  folder.write("Zebra/z", "");
  std::filesystem::remove(folder.path("Zebra/z"));
  folder.write("Zebra/z.row", "\x06\x06\x06");
  const auto dataset = image_folder<std::uint8_t, Row, Reverse>(folder.path());
  CHECK(dataset.class_names() == std::vector<std::string>{"Zebra", "cat", "dog"});
  CHECK(dataset.cardinality() == data::Cardinality::known(5));
  CHECK(labels_and_firsts(dataset) == std::vector<int>{0, 6, 1, 1, 1, 2, 2, 4, 2, 5});
  const auto again = dataset;
  CHECK(labels_and_firsts(again) == labels_and_firsts(dataset));
}

TEST_CASE("pixels are floats in [0, 1] or bytes, with the requested number of channels") {
  const support::TemporaryFolder folder;
  folder.write("a/a.row", std::string("\0\x33\xFF\x0A\x14\x1E", 6));
  const auto floats = collect(image_folder<Row>(folder.path()));
  REQUIRE(floats.size() == 1);
  CHECK(floats[0].x.shape() == dist::Shape{1, 2, 3});
  CHECK(values(floats[0].x) == std::vector<float>{0, 0.2F, 1, 10 / 255.0F, 20 / 255.0F, 30 / 255.0F});
  const auto bytes = collect(image_folder<std::uint8_t, Row>(folder.path(), {.channels = 1}));
  CHECK(bytes[0].x.shape() == dist::Shape{1, 6, 1});
  CHECK(values(bytes[0].x) == std::vector<std::uint8_t>{0, 0x33, 0xFF, 0x0A, 0x14, 0x1E});
  CHECK_THROWS_WITH_AS(collect(image_folder<Row>(folder.path(), {.max_elements = 5})),
                       doctest::Contains("/a/a.row' is too large"), FileError);
}

TEST_CASE("image folders support resumed passes, random changes, batches and sharding") {
  const support::TemporaryFolder folder;
  for (int i = 0; i < 7; ++i)
    folder.write((i < 3 ? "a/" : "b/") + std::to_string(i) + ".row", std::string(3, static_cast<char>(i)));
  const auto dataset = image_folder<std::uint8_t, Row>(folder.path());
  auto pass = dataset.iterate(0);
  static_assert(data::Resumable<decltype(pass)>);
  decltype(dataset)::Element element{};
  pass.seek(5);
  CHECK(pass.next(element));
  CHECK(element.x[0] == 5);
  CHECK(pass.position() == 6);
  pass.seek(100);
  CHECK(pass.position() == 7);
  CHECK_FALSE(pass.next(element));
  pass.seek(2);
  CHECK(pass.next(element));
  CHECK(element.y == 0);
  using Found = std::vector<int>;
  CHECK(labels_and_firsts(data::auto_shard(dataset, data::AutoShardPolicy::automatic, 3, 1)) == Found{0, 1, 1, 4});
  CHECK(labels_and_firsts(data::auto_shard(dataset, data::AutoShardPolicy::data, 3, 1)) == Found{0, 1, 1, 4});
  CHECK_THROWS_AS(static_cast<void>(data::auto_shard(dataset, data::AutoShardPolicy::file, 8, 1)),
                  dist::InvalidArgument);
  const auto batches = collect(dataset | data::random_flip() | data::batch(4));
  REQUIRE(batches.size() == 2);
  CHECK(batches[0].x.shape() == dist::Shape{4, 1, 1, 3});
  CHECK(values(batches[1].y) == std::vector<std::int32_t>{1, 1, 1});
}

TEST_CASE("folders without classes or images, and files of other formats, are rejected by name") {
  const support::TemporaryFolder folder;
  const auto refuse = [&](const std::string& because) {
    CHECK_THROWS_WITH_AS(image_folder<Row>(folder.path()), doctest::Contains(because.c_str()), FileError);
  };
  folder.write("file.row", "");
  refuse("File '" + folder.path() + "' has no classes");
  folder.write("a/.hidden", "");
  refuse("File '" + folder.path() + "/a' has no images");
  folder.write("a/1.row", "abc");
  folder.write("a/2.rev", "abc");
  refuse("File '" + folder.path() +
         "/a/2.rev' is not in a format that this dataset reads (the names of images must end with: row, line)");
  CHECK_THROWS_WITH_AS(image_folder<Row>(folder.path("nowhere")),
                       doctest::Contains("nowhere' cannot be read as a folder (No such file or directory)"), FileError);
}

TEST_CASE("an image that vanishes is reported when it is read") {
  const support::TemporaryFolder folder;
  folder.write("a/1.row", "abc");
  const auto dataset = image_folder<Row>(folder.path());
  std::filesystem::remove(folder.path("a/1.row"));
  CHECK_THROWS_WITH_AS(collect(dataset), doctest::Contains("/a/1.row' cannot be opened"), FileError);
}
