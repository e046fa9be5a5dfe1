#include <dist/data/idx.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>

using dist::FileError;
using dist::Shape;
using dist::Tensor;
using dist::data::read_idx;
using dist::io::MemorySource;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::joined;
using dist_test::values;

namespace {

template <class T>
Tensor<T> read(const Bytes& content, std::size_t max_elements = 1000) {
  MemorySource source{content, "file.idx"};
  return read_idx<T>(source, max_elements);
}
template <class T>
void refuse(const Bytes& content, const char* because, std::size_t max_elements = 1000) {
  CHECK_THROWS_WITH_AS(static_cast<void>(read<T>(content, max_elements)), doctest::Contains(because), FileError);
}

const Bytes two_by_three = bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255});

}  // namespace

TEST_CASE("read_idx reads every element type, big-endian") {
  const Tensor<std::uint8_t> matrix = read<std::uint8_t>(two_by_three);
  CHECK(matrix.shape() == Shape{2, 3});
  CHECK(values(matrix) == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255});
  CHECK(values(read<std::int8_t>(bytes({0, 0, 9, 1, 0, 0, 0, 2, 127, 128}))) == std::vector<std::int8_t>{127, -128});
  CHECK(values(read<std::int16_t>(bytes({0, 0, 11, 1, 0, 0, 0, 2, 1, 2, 255, 254}))) ==
        std::vector<std::int16_t>{258, -2});
  CHECK(values(read<std::int32_t>(bytes({0, 0, 12, 1, 0, 0, 0, 1, 1, 2, 3, 4}))) ==
        std::vector<std::int32_t>{0x01020304});
  // In IEEE 754, 1.5 is 0x3FC00000 and 0x3FF8000000000000.
  CHECK(values(read<float>(bytes({0, 0, 13, 1, 0, 0, 0, 1, 0x3F, 0xC0, 0, 0}))) == std::vector<float>{1.5F});
  CHECK(values(read<double>(bytes({0, 0, 14, 1, 0, 0, 0, 1, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0}))) ==
        std::vector<double>{1.5});
}

TEST_CASE("read_idx supports short reads, empty axes and arrays of exactly the limit") {
  for (std::size_t step = 1; step < 5; ++step) {
    dist_test::Trickle source{MemorySource{two_by_three}, step};
    CHECK(values(read_idx<std::uint8_t>(source, 6)) == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255});
  }
  CHECK(read<std::uint8_t>(bytes({0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 9})).shape() == Shape{0, 9});
}

TEST_CASE("read_idx reads an array larger than its first buffer") {
  constexpr unsigned rows = 1000;
  constexpr unsigned columns = 301;
  Bytes content = bytes({0, 0, 11, 2, 0, 0, rows >> 8, rows & 255, 0, 0, columns >> 8, columns & 255});
  for (unsigned i = 0; i < rows * columns; ++i) {
    content.push_back(static_cast<std::byte>(i % 100));
    content.push_back(static_cast<std::byte>(i % 251));
  }
  const Tensor<std::int16_t> matrix = read<std::int16_t>(content, rows * columns);
  REQUIRE(matrix.shape() == Shape{rows, columns});
  bool same = true;
  for (unsigned i = 0; i < rows * columns; ++i) same = same && matrix[i] == static_cast<int>(i % 100 * 256 + i % 251);
  CHECK(same);
}

TEST_CASE("data other than IDX are rejected by their first bytes") {
  refuse<std::uint8_t>({}, "File 'file.idx' is not an IDX file (it has 0 bytes");
  refuse<std::uint8_t>(bytes({0, 0, 8}), "it has 3 bytes");
  refuse<std::uint8_t>(bytes("PNG data"), "its first two bytes are 80 and 78, expected 0 and 0");
  refuse<std::uint8_t>(bytes({0x1f, 0x8b, 8, 0}), "It is compressed: read it with read_idx_gz");
}

TEST_CASE("another element type is rejected by name") {
  refuse<float>(two_by_three, "its type code is 8 (uint8), expected 13 (float32)");
  refuse<std::uint8_t>(bytes({0, 0, 7, 1, 0, 0, 0, 1, 1}), "its type code is 7 (not an IDX type), expected 8 (uint8)");
}

TEST_CASE("ranks of 0 and above the maximum are rejected") {
  refuse<std::uint8_t>(bytes({0, 0, 8, 0, 1}), "rank 0, expected 1 to 6");
  refuse<std::uint8_t>(bytes({0, 0, 8, 7}), "rank 7, expected 1 to 6");
  refuse<std::uint8_t>(bytes({0, 0, 8, 255}), "rank 255, expected 1 to 6");
}

TEST_CASE("a truncated file is rejected at any length") {
  for (std::size_t length = 0; length < two_by_three.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_AS(static_cast<void>(
                        read<std::uint8_t>(Bytes(two_by_three.begin(), two_by_three.begin() + std::ptrdiff_t(length)))),
                    FileError);
  }
  refuse<std::uint8_t>(bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0}), "the header ends before extent 2 of 2");
  refuse<std::uint8_t>(bytes({0, 0, 8, 1, 0, 0, 0, 9, 1, 2}), "announces shape [9], 9 bytes of elements, but 2 follow");
  refuse<std::int16_t>(bytes({0, 0, 11, 1, 0, 0, 0, 2, 1, 2, 3}),
                       "announces shape [2], 4 bytes of elements, but 3 follow");
}

TEST_CASE("trailing bytes are rejected") {
  refuse<std::uint8_t>(joined({two_by_three, bytes({0})}),
                       "announces shape [2, 3], 6 bytes of elements, but more follow");
}

TEST_CASE("element counts above the limit or with overflow are rejected before allocation") {
  refuse<std::uint8_t>(two_by_three, "the extents up to axis 1 multiply to more than 5", 5);
  const Bytes four = bytes({255, 255, 255, 255});
  const Bytes six_axes = joined({bytes({0, 0, 8, 6}), four, four, four, four, four, four});
  refuse<std::uint8_t>(six_axes, "the extents up to axis 2 multiply to more than",
                       std::numeric_limits<std::size_t>::max());
  // An empty axis does not hide the others.
  const Bytes none = bytes({0, 0, 0, 0});
  refuse<std::uint8_t>(joined({bytes({0, 0, 8, 4}), none, four, four, four}), "the extents up to axis 1", 1000);
  // The header declares 4 GiB, within the limit, but no elements follow.
  refuse<std::uint8_t>(joined({bytes({0, 0, 8, 1}), four}), "4294967295 bytes of elements, but 0 follow",
                       std::numeric_limits<std::size_t>::max());
}
