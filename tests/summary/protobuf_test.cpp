#include <dist/summary/protobuf.hpp>

#include <string>

#include <doctest/doctest.h>

#include <summary/wire.hpp>

using dist::InvalidArgument;
using dist::summary::detail::protobuf;
using dist::summary::detail::require_text;

TEST_CASE("a message by hand: 150 in field 1, \"testing\" in field 2, a message in field 3") {
  const std::string inner = protobuf([](auto& message) { message.add_int32(1, 150); });
  CHECK(inner == "\x08\x96\x01");
  const std::string outer = protobuf([&](auto& message) {
    message.add_string(2, "testing");
    message.add_message(3, inner);
  });
  CHECK(outer == "\x12\x07testing\x1A\x03\x08\x96\x01");
  const dist_test::Wire wire{outer};
  CHECK(wire.bytes(2) == "testing");
  CHECK(wire.message(3).integer(1) == 150);
}

TEST_CASE("what no reader takes for text is refused") {
  require_text("a tag", "Größe/train loss");
  CHECK_THROWS_WITH_AS(require_text("a tag", ""), doctest::Contains("An event file got a tag that is empty"),
                       InvalidArgument);
  for (const char* words : {"\xFF", "a\nb", "cut \xC3"})
    CHECK_THROWS_WITH_AS(require_text("a tag", words), doctest::Contains("An event file got a tag that is no text"),
                         InvalidArgument);
}
