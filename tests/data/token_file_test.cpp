#include <dist/data/token_file.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/index_shuffle.hpp>
#include <dist/data/shard.hpp>
#include <dist/data/shuffle.hpp>

#include <doctest/doctest.h>

#include <data/sequences.hpp>
#include <support/temporary_folder.hpp>

namespace data = dist::data;
using dist::FileError;
using dist_test::collect;
using dist_test::values;
using Tokens = std::vector<std::int32_t>;

namespace {

/// Returns little-endian numbers of `bytes` bytes.
std::string encoded(const std::vector<std::uint32_t>& numbers, std::size_t bytes) {
  std::string all;
  for (const std::uint32_t number : numbers)
    for (std::size_t i = 0; i < bytes; ++i) all += static_cast<char>(number >> (8 * i) & 0xFF);
  return all;
}

template <class D>
void check_windows(const D& dataset) {
  const auto windows = collect(dataset);
  REQUIRE(windows.size() == 2);
  CHECK(values(windows[0].x) == Tokens{7, 250, 3});
  CHECK(values(windows[0].y) == Tokens{250, 3, 4});
  CHECK(values(windows[1].x) == Tokens{4, 5, 6});
  CHECK(values(windows[1].y) == Tokens{5, 6, 9});
}

/// Checks the windows of 5 of the tokens 0 to 100, in pipelines.
void check_pipelines(const data::TokenWindows& windows) {
  CHECK(windows.cardinality() == data::Cardinality::known(20));
  const auto shuffled = windows | data::index_shuffle(1) | data::batch(3);
  auto pass = shuffled.iterate(2);
  typename decltype(shuffled)::Element batch;
  std::vector<std::int32_t> firsts;
  while (pass.next(batch))
    for (std::size_t row = 0; row < batch.x.rows(); ++row) {
      firsts.push_back(batch.x(row, 0));
      CHECK(batch.y(row, 4) == batch.x(row, 0) + 5);
    }
  CHECK(firsts.size() == 20);
  auto resumed = shuffled.iterate(2);
  resumed.seek(4);
  REQUIRE(resumed.next(batch));
  CHECK(batch.x(0, 0) == firsts[12]);
  const auto shard = collect(windows | data::shard(4, 1));
  REQUIRE(shard.size() == 5);
  CHECK(shard[1].x[0] == 25);
  const auto buffered = collect(windows | data::shuffle(20, 1));
  std::int32_t sum = 0;
  for (const auto& window : buffered) sum += window.x[0];
  CHECK(buffered.size() == 20);
  CHECK(sum == 950);  // 0 + 5 + ... + 95
}

}  // namespace

TEST_CASE("token_file has consecutive windows and the tokens that follow, for each type of token") {
  const support::TemporaryFolder folder;
  const std::vector<std::uint32_t> tokens{7, 250, 3, 4, 5, 6, 9, 8};  // 8 begins no whole window
  check_windows(data::token_file<std::uint8_t>(folder.write("8", encoded(tokens, 1)), 3));
  check_windows(data::token_file<std::uint16_t>(folder.write("16", encoded(tokens, 2)), 3));
  check_windows(data::token_file<std::uint32_t>(folder.write("32", encoded(tokens, 4)), 3));
  const auto large = collect(data::token_file<std::uint16_t>(folder.write("large", encoded({50256, 65535, 1}, 2)), 2));
  REQUIRE(large.size() == 1);
  CHECK(values(large[0].x) == Tokens{50256, 65535});
}

TEST_CASE("token_file reads files with the header of llm.c") {
  const support::TemporaryFolder folder;
  std::vector<std::uint32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = 7;
  const std::string tokens = encoded({7, 250, 3, 4, 5, 6, 9}, 2);
  const std::string file = folder.write("llm.bin", encoded(header, 4) + tokens);
  check_windows(data::token_file<std::uint16_t>(file, 3));
  CHECK_THROWS_WITH_AS(static_cast<void>(data::token_file<std::uint32_t>(file, 3)),
                       doctest::Contains("the header has 7 tokens of 2 bytes, the file 14 bytes for tokens of 4"),
                       FileError);
  CHECK_THROWS_AS(static_cast<void>(data::token_file<std::uint16_t>(
                      folder.write("cut.bin", encoded(header, 4) + tokens.substr(2)), 3)),
                  FileError);
}

TEST_CASE("token_windows has the same windows of tokens in memory") {
  check_windows(data::token_windows({7, 250, 3, 4, 5, 6, 9, 8}, 3));
  const auto shortest = collect(data::token_windows({1, -1}, 1));
  REQUIRE(shortest.size() == 1);
  CHECK(values(shortest[0].y) == Tokens{-1});
  CHECK_THROWS_WITH_AS(static_cast<void>(data::token_windows({1, 2, 3}, 3)),
                       doctest::Contains("it has 3 tokens, a window and its targets need 3 + 1"),
                       dist::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(data::token_windows({1, 2, 3}, 0)), dist::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(data::token_windows({}, 1)), dist::InvalidArgument);
}

TEST_CASE("windows are shuffled, sharded, resumed and batched") {
  const support::TemporaryFolder folder;
  std::vector<std::uint32_t> tokens(101);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint32_t>(i);
  SUBCASE("of a file") {
    check_pipelines(data::token_file<std::uint16_t>(folder.write("tokens", encoded(tokens, 2)), 5));
  }
  SUBCASE("in memory") { check_pipelines(data::token_windows({tokens.begin(), tokens.end()}, 5)); }
}

TEST_CASE("token_file refuses windows without tokens, short and cut files, and tokens out of range") {
  const support::TemporaryFolder folder;
  const std::string file = folder.write("tokens", encoded({1, 2, 3}, 2));
  CHECK_THROWS_AS(static_cast<void>(data::token_file<std::uint16_t>(file, 0)), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(data::token_file<std::uint16_t>(file, 3)),
                       doctest::Contains("it has 3 tokens, a window and its targets need 3 + 1"), FileError);
  CHECK_THROWS_WITH_AS(static_cast<void>(data::token_file<std::uint32_t>(file, 1)),
                       doctest::Contains("ends within a token (6 bytes, a token has 4)"), FileError);
  CHECK_THROWS_AS(static_cast<void>(data::token_file<std::uint16_t>(folder.path("nowhere"), 1)), FileError);
  CHECK_THROWS_AS(static_cast<void>(data::token_file<std::uint16_t>(folder.write("empty", ""), 1)), FileError);
  const std::string large = folder.write("large", encoded({1, 0x80000000U}, 4));
  CHECK_THROWS_WITH_AS(static_cast<void>(collect(data::token_file<std::uint32_t>(large, 1))),
                       doctest::Contains("token 1 is 2147483648"), FileError);
}
