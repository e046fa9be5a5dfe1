#include <dist/hlo/collectives.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <hlo/run.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;
using testing::Floats;
using testing::Numbers;

TEST_CASE("collectives combine the arrays of 2 and of 4 replicas") {
  const auto check = [](auto count, const std::vector<Numbers>& parts, const Numbers& sum, const Numbers& gathered) {
    constexpr std::size_t replicas = decltype(count)::value;
    CAPTURE(replicas);
    const dist::pjrt::Client client = testing::cpus(replicas);
    const hlo::Program program{client, hlo::trace<Floats<4>>(replicas, [](auto x) {
                                 return std::tuple{hlo::all_reduce(dist::sum, x),
                                                   hlo::all_reduce(dist::max, x),
                                                   hlo::all_reduce(dist::min, x),
                                                   hlo::all_reduce(dist::prod, x),
                                                   hlo::all_reduce(dist::mean, x),
                                                   hlo::all_gather<replicas>(x),
                                                   hlo::all_gather<replicas, 1>(hlo::reshape<2, 2>(x)),
                                                   hlo::reduce_scatter<replicas>(dist::sum, x),
                                                   hlo::replica_id()};
                               })};
    const auto [sums, greatest, least, products, means, all, beside, shares, ids] =
        program(hlo::PerReplica<Floats<4>>{client, parts});
    for (std::size_t r = 0; r < replicas; ++r) {
      CHECK(sums.on(r) == sum);
      CHECK(all.on(r) == gathered);
      CHECK(ids.on(r)[0] == r);
      CHECK(shares.on(r).size() == 4 / replicas);
      for (std::size_t i = 0; i < 4; ++i) {
        float most = parts[0][i], fewest = parts[0][i], product = 1;
        for (const Numbers& part : parts) {
          most = std::max(most, part[i]);
          fewest = std::min(fewest, part[i]);
          product *= part[i];
        }
        CHECK(greatest.on(r)[i] == most);
        CHECK(least.on(r)[i] == fewest);
        CHECK(products.on(r)[i] == product);
        CHECK(means.on(r)[i] == sum[i] / static_cast<float>(replicas));
        if (i < 4 / replicas) CHECK(shares.on(r)[i] == sum[r * (4 / replicas) + i]);
        for (std::size_t from = 0; from < replicas; ++from)
          CHECK(beside.on(r)(i / 2, 2 * from + i % 2) == parts[from][i]);
      }
    }
  };
  check(std::integral_constant<std::size_t, 2>{}, {{{4}, {1, 2, 3, 4}}, {{4}, {-5, 6, 0, 2}}}, {{4}, {-4, 8, 3, 6}},
        {{8}, {1, 2, 3, 4, -5, 6, 0, 2}});
  check(std::integral_constant<std::size_t, 4>{},
        {{{4}, {1, 2, 3, 4}}, {{4}, {1, 1, 1, 1}}, {{4}, {2, 2, 2, 2}}, {{4}, {0, 3, -1, 5}}}, {{4}, {4, 8, 5, 12}},
        {{16}, {1, 2, 3, 4, 1, 1, 1, 1, 2, 2, 2, 2, 0, 3, -1, 5}});
}

TEST_CASE("a collective for another number of replicas than the program's is rejected") {
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          static_cast<void>(hlo::trace<Floats<4>>(3, [](auto x) { return hlo::all_gather<2>(x); }));
        }).find("hlo::all_gather does not fit this program (it is for 2 replicas, but the program is for 3)") !=
        std::string::npos);
  CHECK_THROWS_AS(
      static_cast<void>(hlo::trace<Floats<4>>(3, [](auto x) { return hlo::reduce_scatter<2>(dist::sum, x); })),
      dist::InvalidArgument);
}
