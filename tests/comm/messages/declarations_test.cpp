// alone
#include <dist/comm/messages/declarations.hpp>

#include <doctest/doctest.h>

#include <dist/comm/auto_all_reduce.hpp>

namespace {

template <class T>
concept IsDefined = requires {
  sizeof(T);
};

}  // namespace

TEST_CASE("policies declare their message algorithms without defining them") {
  CHECK_FALSE(IsDefined<dist::detail::MessageRing<int>>);
  CHECK_FALSE(IsDefined<dist::detail::MessageChoice<int>>);
  CHECK_FALSE(IsDefined<dist::detail::MessageCollectives<int, dist::detail::MessageRing<int>>>);
}
