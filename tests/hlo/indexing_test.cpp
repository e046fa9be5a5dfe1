#include <dist/hlo/indexing.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>

#include <dist/hlo/gradients.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;
using testing::Floats;
using testing::Numbers;
using Index = hlo::Traced<std::int32_t>;

TEST_CASE("slices with a computed start can be read and written, with gradients") {
  const auto [row, last, put, of_cut, of_whole, of_part] = testing::run<Floats<2, 3>, Floats<2, 1>, Index>(
      1,
      [](auto x, auto part, auto first) {
        const auto weighted = [](auto y) { return hlo::reduce(dist::sum, y * y * y); };
        const auto changed = hlo::dynamic_update_slice<1>(x, part, first);
        const auto cut = std::get<0>(hlo::gradients(weighted(hlo::dynamic_slice<1, 2>(x, first)), std::tuple{x}));
        const auto [whole, of_it] = hlo::gradients(weighted(changed), std::tuple{x, part});
        return std::tuple{
            hlo::dynamic_slice<0, 1>(x, first), hlo::dynamic_slice<1, 2>(x, first + 5), changed, cut, whole, of_it};
      },
      Numbers{{2, 3}, {1, 2, 3, 4, 5, 6}}, Numbers{{2, 1}, {7, 8}}, Tensor<std::int32_t>{{}, {1}});
  CHECK(row == Numbers{{1, 3}, {4, 5, 6}});
  CHECK(last == Numbers{{2, 2}, {2, 3, 5, 6}});
  CHECK(put == Numbers{{2, 3}, {1, 7, 3, 4, 8, 6}});
  CHECK(of_cut == Numbers{{2, 3}, {0, 12, 27, 0, 75, 108}});
  CHECK(of_whole == Numbers{{2, 3}, {3, 0, 27, 48, 0, 108}});
  CHECK(of_part == Numbers{{2, 1}, {147, 192}});
}

TEST_CASE("take gathers rows by index, and scatter_add adds up repeated rows") {
  using Ids = hlo::Traced<std::int32_t, 2, 2>;
  const auto [taken, one, added, of_table, of_base, of_updates] = testing::run<Floats<3, 2>, Ids, Floats<2, 2, 2>>(
      1,
      [](auto table, auto ids, auto updates) {
        const auto squares = [](auto y) { return hlo::reduce(dist::sum, y * y); };
        const auto sums = hlo::scatter_add(table, ids, updates);
        const auto by_table = std::get<0>(hlo::gradients(squares(hlo::take(table, ids)), std::tuple{table}));
        const auto [base, added_to_it] = hlo::gradients(squares(sums), std::tuple{table, updates});
        return std::tuple{hlo::take(table, ids), hlo::take(table, Index{2}), sums, by_table, base, added_to_it};
      },
      Numbers{{3, 2}, {1, 2, 3, 4, 5, 6}}, Tensor<std::int32_t>{{2, 2}, {2, 0, 2, 2}},
      Numbers{{2, 2, 2}, {1, 1, 2, 2, 3, 3, 4, 4}});
  CHECK(taken == Numbers{{2, 2, 2}, {5, 6, 1, 2, 5, 6, 5, 6}});
  CHECK(one == Numbers{{2}, {5, 6}});
  CHECK(added == Numbers{{3, 2}, {3, 4, 3, 4, 13, 14}});
  CHECK(of_table == Numbers{{3, 2}, {2, 4, 0, 0, 30, 36}});
  CHECK(of_base == Numbers{{3, 2}, {6, 8, 6, 8, 26, 28}});
  CHECK(of_updates == Numbers{{2, 2, 2}, {26, 28, 6, 8, 26, 28, 26, 28}});
}
