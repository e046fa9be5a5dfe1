#include <dist/core/checksum.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace {

std::uint64_t of(std::vector<std::size_t> counts) { return dist::detail::checksum_of(counts); }

}  // namespace

TEST_CASE("counts that differ in number, order or value have other checksums") {
  const std::set<std::uint64_t> all{of({}),     of({0}),    of({0, 0}), of({2, 3}),
                                    of({3, 2}), of({1, 4}), of({5}),    of({2, 3, 0})};
  CHECK(all.size() == 8);
  CHECK(of({2, 3}) == of({2, 3}));
  CHECK(dist::detail::extended_checksum(of({2}), 3) == of({2, 3}));
}
