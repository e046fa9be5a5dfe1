#include <dist/io/gzip.hpp>

#include <doctest/doctest.h>

#include <string>

#include <io/bytes.hpp>
#include <io/gzip_bytes.hpp>

using dist::FileError;
using dist::io::GzipSource;
using dist::io::MemorySource;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::gzip;
using dist_test::joined;
using dist_test::read_all;
using dist_test::Trickle;

static_assert(dist::io::ByteSource<GzipSource<MemorySource>>);

namespace {

Bytes inflated(const Bytes& compressed, std::size_t step = 4096) {
  GzipSource<MemorySource> source{MemorySource{compressed, "file.gz"}};
  return read_all(source, step);
}

Bytes mixed(std::size_t size) {
  Bytes content(size);
  unsigned state = 1;
  for (std::byte& byte : content) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 29);
  }
  return content;
}

}  // namespace

TEST_CASE("gzip data are decompressed for any size of reads") {
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 300'000U}) {
    const Bytes content = mixed(size);
    const Bytes compressed = gzip(content);
    CAPTURE(size);
    CHECK(inflated(compressed) == content);
    CHECK(inflated(compressed, 100'000) == content);
    GzipSource<Trickle<MemorySource>> slow{Trickle{MemorySource{compressed}, 1}};
    CHECK(read_all(slow, 1009) == content);
  }
  CHECK(inflated(gzip(mixed(5000)), 1) == mixed(5000));
}

TEST_CASE("concatenated members are one file") {
  const Bytes members = joined({gzip(mixed(1000)), gzip({}), gzip(bytes("end"))});
  const Bytes content = joined({mixed(1000), bytes("end")});
  CHECK(inflated(members) == content);
  GzipSource<Trickle<MemorySource>> slow{Trickle{MemorySource{members}, 1}};
  CHECK(read_all(slow, 3) == content);
}

TEST_CASE("a source stays at its end") {
  const Bytes compressed = gzip(bytes("abc"));
  GzipSource<MemorySource> source{MemorySource{compressed}};
  Bytes buffer(10);
  CHECK(source.read({}) == 0);
  CHECK(source.read(buffer) == 3);
  CHECK(source.read(buffer) == 0);
  CHECK(source.read(buffer) == 0);
}

TEST_CASE("data other than gzip are rejected with their first bytes") {
  CHECK_THROWS_WITH_AS(inflated({}), doctest::Contains("File 'file.gz' is not a gzip file (it is empty)"), FileError);
  CHECK_THROWS_WITH_AS(inflated(bytes("PK\x03\x04")), doctest::Contains("starts with the bytes 50 4b, expected 1f 8b"),
                       FileError);
  CHECK_THROWS_WITH_AS(inflated(bytes({0x1f})), doctest::Contains("starts with the bytes 1f, expected 1f 8b"),
                       FileError);
}

TEST_CASE("zeros after a member are padding") {
  const Bytes compressed = gzip(bytes("abc")), zeros(100'000);
  CHECK(inflated(joined({compressed, bytes({0})})) == bytes("abc"));
  CHECK(inflated(joined({compressed, zeros, compressed, zeros})) == bytes("abcabc"));
  CHECK_THROWS_AS(inflated(joined({zeros, compressed})), FileError);
}

TEST_CASE("other bytes after the data are rejected") {
  const Bytes compressed = gzip(bytes("abc"));
  for (const Bytes& rest : {bytes("garbage"), bytes({0, 1}), bytes({0x1f})}) {
    CHECK_THROWS_WITH_AS(inflated(joined({compressed, rest})), doctest::Contains("has bytes after its compressed data"),
                         FileError);
  }
  CHECK_THROWS_WITH_AS(inflated(joined({compressed, bytes("hi")})),
                       doctest::Contains(("at byte " + std::to_string(compressed.size()) + ": 68 69").c_str()),
                       FileError);
}

TEST_CASE("a truncated file is rejected at any length, unless the cut is between members") {
  const Bytes first = gzip(mixed(200));
  const Bytes whole = joined({first, gzip(mixed(50))});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    CAPTURE(length);
    if (length == first.size())
      CHECK(inflated(cut) == mixed(200));
    else
      CHECK_THROWS_AS(inflated(cut), FileError);
  }
}

TEST_CASE("no flipped bit changes the content undetected") {
  const Bytes content = mixed(300);
  const Bytes sound = gzip(content);
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < sound.size() * 8; ++bit) {
    Bytes flipped = sound;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CAPTURE(bit);
    try {
      const Bytes accepted = inflated(flipped);
      CHECK(accepted == content);
      CHECK(bit / 8 < 10);  // header fields that are independent of the content: time, system
    } catch (const FileError&) {
      ++refused;
    }
  }
  // Magic, method and flags, and everything after the header of ten bytes.
  CHECK(refused >= (sound.size() - 10) * 8 + 2 * 8);
}

TEST_CASE("a wrong checksum is reported") {
  Bytes wrong = gzip(bytes("abc"));
  wrong[wrong.size() - 8] ^= std::byte{1};
  CHECK_THROWS_WITH_AS(inflated(wrong),
                       doctest::Contains("is corrupt (zlib reports 'incorrect data check' in gzip member 1"),
                       FileError);
}

TEST_CASE("a reader of a decompression bomb may stop at any byte") {
  const Bytes bomb = gzip(Bytes(std::size_t{64} << 20));
  REQUIRE(bomb.size() < 100'000);
  GzipSource<MemorySource> source{MemorySource{bomb}};
  Bytes buffer(1000);
  CHECK(source.read(buffer) == 1000);
}

TEST_CASE("raw deflate data are decompressed (RFC 1951)") {
  using dist::io::InflateSource;
  // A stored block: last block, type 0, length 5 and its complement.
  const Bytes plain = bytes({0x01, 5, 0, 0xFA, 0xFF, 'h', 'e', 'l', 'l', 'o'});
  for (std::size_t step = 1; step < 4; ++step) {
    InflateSource source{Trickle{MemorySource{plain, "raw"}, step}};
    CHECK(source.name() == "raw");
    CHECK(read_all(source, step) == bytes("hello"));
  }
  const Bytes with_more = joined({plain, bytes("more")});
  InflateSource followed{MemorySource{with_more}};
  CHECK(read_all(followed) == bytes("hello"));
  InflateSource truncated{MemorySource{std::span{plain}.first(8)}};
  CHECK_THROWS_WITH_AS(read_all(truncated), doctest::Contains("end inside deflated data, after 8 bytes"), FileError);
  const Bytes reserved = bytes({0x07, 0, 0});  // block type 3
  InflateSource corrupt{MemorySource{reserved}};
  CHECK_THROWS_WITH_AS(read_all(corrupt), doctest::Contains("is corrupt (zlib reports"), FileError);
}

TEST_CASE("crc32_of matches the check value for the digits 1 to 9") {
  const Bytes digits = bytes("123456789");
  CHECK(dist::io::crc32_of(digits) == 0xCBF43926);  // the check value of the catalogue of CRC algorithms
  CHECK(dist::io::crc32_of(std::span{digits}.subspan(4), dist::io::crc32_of(std::span{digits}.first(4))) == 0xCBF43926);
  CHECK(dist::io::crc32_of({}) == 0);
  CHECK(dist::io::crc32_of({}, 0xCBF43926) == 0xCBF43926);
}
