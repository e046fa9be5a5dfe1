#include <dist/comm/self.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/comm/cross_device_ops.hpp>

#include <doctest/doctest.h>

static_assert(dist::GroupOfOne<dist::SelfCommunicator> && dist::ReportsFailures<dist::SelfCommunicator> &&
              dist::ComparesCalls<dist::SelfCommunicator> && dist::HasLocalGroup<dist::SelfCommunicator> &&
              dist::ReportsFailures<dist::SelfCollectives>);
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

TEST_CASE("reduce_and_apply updates every element once with the gradients") {
  std::array<float, 4> gradient{1, 2, 3, 4};
  std::array<float, 4> mirror{10, 20, 30, 40};
  std::array<int, 4> calls{};
  dist::SelfCollectives::reduce_and_apply(dist::mean, std::span<const float>{gradient}, std::span<float>{mirror},
                                          [&](std::size_t i, float weight, float reduced) {
                                            ++calls[i];
                                            CHECK(reduced == gradient[i]);
                                            return weight - reduced;
                                          });
  CHECK(calls == std::array<int, 4>{1, 1, 1, 1});
  CHECK(mirror == std::array<float, 4>{9, 18, 27, 36});
  CHECK(gradient == std::array<float, 4>{1, 2, 3, 4});
}

TEST_CASE("reduce_scatter and update_shards see the whole values") {
  std::array<float, 3> values{1, 2, 3};
  int calls = 0;
  dist::SelfCollectives::reduce_scatter(dist::sum, std::span<const float>{values},
                                        [&](std::size_t first, std::span<const float> reduced) {
                                          ++calls;
                                          CHECK(first == 0);
                                          CHECK(reduced.data() == values.data());
                                          CHECK(reduced.size() == 3);
                                        });
  const std::array<float, 3> gradients{4, 5, 6};
  dist::SelfCollectives::update_shards(std::span<const float>{gradients}, std::span<float>{values},
                                       [&](std::size_t i, float weight, float gradient) {
                                         ++calls;
                                         CHECK(weight == values[i]);
                                         CHECK(gradient == gradients[i]);
                                         return i == 1 ? 7.0f : weight;
                                       });
  CHECK(calls == 4);
  CHECK(values == std::array<float, 3>{1, 7, 3});
}

TEST_CASE("empty spans cause no calls") {
  const std::span<float> none;
  int calls = 0;
  const auto update = [&](std::size_t, float weight, float) {
    ++calls;
    return weight;
  };
  dist::SelfCollectives::reduce_and_apply(dist::sum, std::span<const float>{none}, none, update);
  dist::SelfCollectives::reduce_scatter(dist::sum, std::span<const float>{none}, [&](auto...) { ++calls; });
  dist::SelfCollectives::update_shards(std::span<const float>{none}, none, update);
  CHECK(calls == 0);
}
