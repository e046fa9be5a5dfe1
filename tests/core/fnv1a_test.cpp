#include <dist/core/fnv1a.hpp>

#include <doctest/doctest.h>

#include <string_view>

TEST_CASE("FNV-1a has the values that its authors give") {
  const auto checksum_of = [](std::string_view text) {
    dist::detail::Fnv1a checksum;
    checksum.add(text);
    return checksum.value;
  };
  CHECK(checksum_of("") == 0xcbf29ce484222325U);
  CHECK(checksum_of("a") == 0xaf63dc4c8601ec8cU);
  CHECK(checksum_of("foobar") == 0x85944171f73967e8U);
}
