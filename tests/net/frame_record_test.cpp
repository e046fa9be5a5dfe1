#include <dist/net/frame.hpp>

#include <doctest/doctest.h>

using dist::net::FrameError;
using dist::net::RecordReader;
using dist::net::RecordWriter;

TEST_CASE("a record is read as written, in little-endian order") {
  RecordWriter writer;
  writer.number(std::uint8_t{7}).number(std::uint32_t{0x01020304}).string("worker").string("");
  const auto bytes = writer.content();
  REQUIRE(bytes.size() == 1 + 4 + 4 + 6 + 4);
  CHECK(std::to_integer<int>(bytes[1]) == 4);
  CHECK(std::to_integer<int>(bytes[4]) == 1);
  RecordReader reader{bytes};
  CHECK(reader.number<std::uint8_t>() == 7);
  CHECK(reader.number<std::uint32_t>() == 0x01020304);
  CHECK(reader.string() == "worker");
  CHECK(reader.string() == "");
  CHECK(reader.empty());
  CHECK_NOTHROW(reader.expect_end());
}

TEST_CASE("a record that is too short or too long, or has a wrong length, is refused") {
  RecordWriter writer;
  writer.string("worker");
  for (std::size_t size = 0; size < writer.content().size(); ++size) {
    CAPTURE(size);
    RecordReader reader{writer.content().first(size)};
    CHECK_THROWS_AS(static_cast<void>(reader.string()), FrameError);
  }
  RecordReader more{writer.content()};
  CHECK_THROWS_AS(more.expect_end(), FrameError);
  RecordWriter liar;
  liar.number(std::uint32_t{0xFFFFFFFF});
  RecordReader reader{liar.content()};
  CHECK_THROWS_AS(static_cast<void>(reader.string()), FrameError);
}

TEST_CASE("a text longer than allowed is refused") {
  RecordWriter writer;
  writer.string("worker");
  RecordReader exact{writer.content()};
  CHECK(exact.string(6) == "worker");
  RecordReader reader{writer.content()};
  CHECK_THROWS_AS(static_cast<void>(reader.string(5)), FrameError);
}
