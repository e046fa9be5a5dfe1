#include <dist/core/hash.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace {

std::uint64_t of(std::vector<std::size_t> counts) {
  return dist::detail::hash_of_numbers(std::span<const std::size_t>{counts});
}

}  // namespace

TEST_CASE("sequences with different lengths, orders or values have different hashes") {
  const std::set<std::uint64_t> all{of({}),     of({0}),    of({0, 0}), of({2, 3}),
                                    of({3, 2}), of({1, 4}), of({5}),    of({2, 3, 0})};
  CHECK(all.size() == 8);
  CHECK(of({2, 3}) == of({2, 3}));
  CHECK(dist::detail::combine(of({2}), 3) == of({2, 3}));
}

TEST_CASE("different texts have different hashes") {
  const std::string text(40, 'a');
  std::set<std::uint64_t> seen{dist::detail::hash_of(text)};
  for (std::size_t place = 0; place < text.size(); ++place) {
    std::string other = text;
    other[place] = 'b';
    seen.insert(dist::detail::hash_of(other));
    seen.insert(dist::detail::hash_of(text.substr(0, place)));
  }
  CHECK(seen.size() == 2 * text.size() + 1);
}
