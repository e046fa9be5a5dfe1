#include <dist/comm/self.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/comm/cross_device_ops.hpp>

#include <doctest/doctest.h>

static_assert(dist::Communicator<dist::SelfCommunicator>);
static_assert(!dist::SharesMemory<dist::SelfCommunicator>);
static_assert(!dist::ExchangesSmall<dist::SelfCommunicator>);
static_assert(dist::Collectives<dist::SelfCollectives>);
static_assert(std::is_empty_v<dist::SelfCommunicator> && std::is_empty_v<dist::SelfCollectives>);

TEST_CASE("a group of one is known at compile time") {
  static_assert(dist::SelfCollectives::communicator().size() == 1);
  static_assert(dist::SelfCollectives::communicator().rank() == 0);
  dist::SelfCommunicator::barrier();
}

TEST_CASE("the collectives of a group of one are identities (spec H03)") {
  std::array<double, 3> values{1.5, -2.0, 1e300};
  const std::array<double, 3> before = values;
  const dist::SelfCollectives collectives;
  collectives.all_reduce(dist::sum, std::span<double>{values});
  CHECK(values == before);
  collectives.all_reduce(dist::mean, std::span<double>{values});
  CHECK(values == before);
  collectives.all_reduce(dist::prod, std::span<double>{values});
  CHECK(values == before);
  collectives.broadcast(0, std::span<double>{values});
  CHECK(values == before);
}

TEST_CASE("reduce_and_apply is one call of the update with everything") {
  std::array<float, 4> gradient{1, 2, 3, 4};
  std::array<float, 4> mirror{10, 20, 30, 40};
  int calls = 0;
  dist::SelfCollectives::reduce_and_apply(
      dist::mean, std::span<float>{gradient}, std::span<float>{mirror},
      [&](std::size_t first, std::span<float> mine, std::span<const float> reduced) {
        ++calls;
        CHECK(first == 0);
        REQUIRE(mine.size() == 4);
        REQUIRE(reduced.size() == 4);
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] -= reduced[i];
      });
  CHECK(calls == 1);
  CHECK(mirror == std::array<float, 4>{9, 18, 27, 36});
  CHECK(gradient == std::array<float, 4>{1, 2, 3, 4});
}

TEST_CASE("the halves of reduce_and_apply see the values themselves") {
  std::array<float, 3> values{1, 2, 3};
  int calls = 0;
  dist::SelfCollectives::reduce_scatter(dist::sum, std::span<const float>{values},
                                        [&](std::size_t first, std::span<const float> reduced) {
                                          ++calls;
                                          CHECK(first == 0);
                                          CHECK(reduced.data() == values.data());
                                          CHECK(reduced.size() == 3);
                                        });
  dist::SelfCollectives::update_shards(std::span<float>{values}, [&](std::size_t first, std::span<float> mine) {
    ++calls;
    CHECK(first == 0);
    CHECK(mine.data() == values.data());
    REQUIRE(mine.size() == 3);
    mine[1] = 7;
  });
  CHECK(calls == 2);
  CHECK(values == std::array<float, 3>{1, 7, 3});
}

TEST_CASE("nothing is called where there are no elements") {
  const std::span<float> none;
  int calls = 0;
  const auto call = [&](auto...) { ++calls; };
  dist::SelfCollectives::reduce_and_apply(dist::sum, none, none, call);
  dist::SelfCollectives::reduce_scatter(dist::sum, std::span<const float>{none}, call);
  dist::SelfCollectives::update_shards(none, call);
  CHECK(calls == 0);
}
