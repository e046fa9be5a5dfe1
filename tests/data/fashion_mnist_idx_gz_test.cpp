#include <dist/data/fashion_mnist.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/gzip_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::data::read_idx_gz;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::gzip;
using dist_test::joined;
using dist_test::values;

namespace {

const Bytes three = bytes({0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9});

}  // namespace

TEST_CASE("read_idx_gz reads compressed and uncompressed files") {
  support::TemporaryFolder folder;
  const std::vector<std::uint8_t> expected{7, 8, 9};
  CHECK(values(read_idx_gz<std::uint8_t>(folder.write("plain", three))) == expected);
  CHECK(values(read_idx_gz<std::uint8_t>(folder.write("compressed.gz", gzip(three)))) == expected);
}

TEST_CASE("read_idx_gz rejects missing, invalid and too large files, naming the file") {
  support::TemporaryFolder folder;
  const auto refuse = [](const std::string& path, const char* because, std::size_t max_elements = 100) {
    CHECK_THROWS_WITH_AS(static_cast<void>(read_idx_gz<std::uint8_t>(path, max_elements)),
                         doctest::Contains(("File '" + path + "' " + because).c_str()), FileError);
  };
  refuse(folder.path("none"), "cannot be opened");
  refuse(folder.write("text", bytes("text")), "is not an IDX file");
  refuse(folder.write("empty", ""), "is not an IDX file (it has 0 bytes");
  refuse(folder.write("text.gz", gzip(bytes("text"))), "is not an IDX file");
  refuse(folder.write("large.gz", gzip(three)), "announces too many elements", 2);
  refuse(folder.write("long.gz", gzip(joined({three, bytes({0})}))), "has bytes after its elements");
}

TEST_CASE("read_idx_gz verifies the checksum after the last element") {
  support::TemporaryFolder folder;
  const Bytes sound = gzip(three);
  for (std::size_t end = 1; end <= 8; ++end) {
    Bytes wrong = sound;
    wrong[sound.size() - end] ^= std::byte{1};
    CHECK_THROWS_WITH_AS(static_cast<void>(read_idx_gz<std::uint8_t>(folder.write("wrong.gz", wrong))),
                         doctest::Contains("is corrupt"), FileError);
    const Bytes cut(sound.begin(), sound.end() - static_cast<std::ptrdiff_t>(end));
    CHECK_THROWS_WITH_AS(static_cast<void>(read_idx_gz<std::uint8_t>(folder.write("cut.gz", cut))),
                         doctest::Contains("is truncated"), FileError);
  }
}
