#include <dist/io/protobuf.hpp>

#include <string>

#include <doctest/doctest.h>

#include <summary/wire.hpp>

using dist::io::detail::protobuf;

TEST_CASE("a message has the expected bytes: 150 in field 1, \"testing\" in field 2, a message in field 3") {
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
