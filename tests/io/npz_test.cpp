#include <dist/io/npz.hpp>

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/npy_bytes.hpp>
#include <io/numpy_files.hpp>
#include <io/zip_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::Shape;
using dist::io::Npz;
using dist::io::RandomAccessMemory;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::npy;
using dist_test::npy_header;
using dist_test::values;
using dist_test::zip;
using dist_test::ZipFile;

namespace {

std::uint32_t checksum(const Bytes& content) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
}
ZipFile stored(const std::string& name, const Bytes& content) {
  return dist_test::stored(name, content, checksum(content));
}
ZipFile deflated(const std::string& name, const Bytes& content) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes compressed(deflateBound(&stream, static_cast<uLong>(content.size())));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return {name, compressed, content.size(), checksum(content), 8, 0};
}

Npz<RandomAccessMemory> open(const Bytes& content) { return Npz{RandomAccessMemory{content, "file.npz"}}; }

const Bytes array = npy(npy_header("|u1", "(2, 3)"), bytes({1, 2, 3, 4, 5, 255}));

/// Checks that an archive of one file is rejected when array `a` is read.
void refuse(const ZipFile& file, const char* because) {
  const Bytes content = zip({file});
  CHECK_THROWS_WITH_AS(static_cast<void>(open(content).read<std::uint8_t>("a")), doctest::Contains(because), FileError);
}

}  // namespace

TEST_CASE("Npz reads files of numpy.save, numpy.savez and numpy.savez_compressed (spec I29)") {
  const std::vector<float> x{0, 1, 2, 3, 4, 5};
  dist::io::MemorySource npy_file{dist_test::numpy_save};
  CHECK(values(dist::io::read_npy<float>(npy_file)) == x);
  for (const Bytes& content : {dist_test::numpy_savez, dist_test::numpy_savez_compressed}) {
    support::TemporaryFolder folder;
    const Npz npz{folder.write("data.npz", content)};
    CHECK(npz.names() == std::vector<std::string>{"x_train", "y_train"});
    const auto x_train = npz.read<float>("x_train");
    CHECK(x_train.shape() == Shape{2, 3});
    CHECK(values(x_train) == x);
    CHECK(values(npz.read<std::int64_t>("y_train")) == std::vector<std::int64_t>{7, -8});
    CHECK(values(npz.read<float>("x_train.npy", 6)) == x);
  }
}

TEST_CASE("Npz reads stored and deflated arrays, also in ZIP64 archives") {
  Bytes big(100'000);
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<std::byte>(i % 251 * (i % 7));
  const Bytes large_array = npy(npy_header("|u1", "(100000,)"), big);
  for (const auto kind : {dist_test::ZipKind::plain, dist_test::ZipKind::large}) {
    const Bytes content = zip({deflated("big.npy", large_array), stored("a.npy", array)}, kind);
    const auto npz = open(content);
    CHECK(npz.read<std::uint8_t>("a").shape() == Shape{2, 3});
    const auto read = npz.read<std::uint8_t>("big");
    CHECK(std::memcmp(read.data(), big.data(), big.size()) == 0);
  }
}

TEST_CASE("missing names, and files other than archives, are rejected") {
  const Bytes content = zip({stored("a.npy", array), stored("b.npy", array)});
  CHECK_THROWS_WITH_AS(static_cast<void>(open(content).read<float>("x")),
                       "File 'file.npz' has no array 'x' (it holds 'a', 'b'). Use one of its names.", FileError);
  std::vector<ZipFile> twelve;
  for (char name = 'a'; name <= 'l'; ++name) twelve.push_back(stored(std::string(1, name) + ".npy", array));
  const Bytes many = zip(twelve);
  CHECK_THROWS_WITH_AS(static_cast<void>(open(many).read<float>("x")), doctest::Contains("'i', 'j' and 2 more)"),
                       FileError);
  const Bytes empty = zip({});
  CHECK_THROWS_WITH_AS(static_cast<void>(open(empty).read<float>("x")), doctest::Contains("it is empty"), FileError);
  CHECK_THROWS_AS(Npz{"/nowhere.npz"}, FileError);
}

TEST_CASE("another element type is rejected, naming the file and the array") {
  const Bytes content = zip({stored("a.npy", array)});
  CHECK_THROWS_WITH_AS(static_cast<void>(open(content).read<float>("a")),
                       doctest::Contains("File 'file.npz:a.npy' has elements of another type"), FileError);
  CHECK_THROWS_WITH_AS(static_cast<void>(open(content).read<std::uint8_t>("a", 5)),
                       doctest::Contains("Raise max_elements"), FileError);
}

TEST_CASE("read_converted converts elements of another type, stored or deflated") {
  const Bytes content = zip({stored("a.npy", array), deflated("b.npy", array)});
  for (const char* const name : {"a", "b"}) {
    const auto converted = open(content).read_converted<float>(name);
    CHECK(converted.shape() == Shape{2, 3});
    CHECK(values(converted) == std::vector<float>{1, 2, 3, 4, 5, 255});
    CHECK_THROWS_WITH_AS(static_cast<void>(open(content).read_converted<std::int8_t>(name)),
                         doctest::Contains("element 5 is 255, wanted i8"), FileError);
  }
}

TEST_CASE("entries that do not match the archive's directory are rejected") {
  ZipFile file = stored("a.npy", array);
  file.crc32 ^= 1;
  refuse(file, "File 'file.npz:a.npy' is corrupt (its CRC-32 is ");
  file = stored("a.npy", array);
  file.size += 1;
  refuse(file, "bytes, the archive says ");
  file.size -= 3;
  refuse(file, "it has more than ");
  file = deflated("a.npy", array);
  file.content.resize(file.content.size() / 2);
  refuse(file, "the compressed data end inside deflated data");
  file = deflated("a.npy", array);
  file.content[0] = std::byte{0xFF};
  refuse(file, "is corrupt (zlib reports '");
  file = stored("a.npy", array);
  file.method = 12;
  refuse(file, "compression method 12");
  file = stored("a.npy", array);
  file.flags = 1;
  refuse(file, "it is encrypted");
}

TEST_CASE("a flipped bit anywhere in the elements is detected") {
  const ZipFile whole = deflated("a.npy", array);
  for (std::size_t bit = 0; bit < 8 * whole.content.size(); ++bit) {
    ZipFile flipped = whole;
    flipped.content[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    const Bytes content = zip({flipped});
    CAPTURE(bit);
    // Bits between the end of the last block and the end of its byte are unused.
    if (bit + 8 < 8 * whole.content.size())
      CHECK_THROWS_AS(static_cast<void>(open(content).read<std::uint8_t>("a")), FileError);
  }
}
