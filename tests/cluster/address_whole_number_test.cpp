#include <dist/cluster/address.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>

using dist::detail::whole_number;

TEST_CASE("whole_number reads decimal digits up to a limit") {
  CHECK(whole_number("0") == 0);
  CHECK(whole_number("007") == 7);
  CHECK(whole_number("65535", 65535) == 65535);
  CHECK_FALSE(whole_number("65536", 65535));
  CHECK(whole_number("18446744073709551615") == std::numeric_limits<std::size_t>::max());
  CHECK_FALSE(whole_number("18446744073709551616"));
}

TEST_CASE("whole_number refuses signs, spaces, fractions and letters") {
  for (const char* written : {"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "one"}) {
    CAPTURE(written);
    CHECK_FALSE(whole_number(written));
  }
}
