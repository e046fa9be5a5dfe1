// The suite of strategy methods with values of several replicas (spec B, C03 to C19, D, E03 to E09, F). A strategy
// joins in its own test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/variable_checks.hpp>
#include <conformance/workers.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/policies.hpp>

#include <doctest/doctest.h>
#include <support/on_host.hpp>

namespace conformance {

/// Returns the value of a local replica from a strategy's result, which is not wrapped under strategies of one replica.
template <class Value>
const auto& value_on([[maybe_unused]] std::size_t local, const Value& value) {
  if constexpr (dist::is_per_replica<Value>) {
    return value[local];
  } else {
    return value;
  }
}

/// Returns a tensor with elements first, first + 1, …
inline dist::Tensor<float> counting(dist::Shape shape, float first = 0) {
  dist::Tensor<float> tensor{shape};
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = first + static_cast<float>(i);
  return tensor;
}

inline std::vector<float> elements_of(const dist::Tensor<float>& tensor) {
  return {tensor.elements().begin(), tensor.elements().end()};
}

/// Returns the text of the error of type `E` that `fn` throws, alone or as the cause of a ReplicaError.
template <class E, class Fn>
std::string refusal(Fn&& fn) {
  try {
    fn();
  } catch (const E& error) {
    return error.what();
  } catch (const dist::ReplicaError& error) {
    try {
      std::rethrow_exception(error.cause());
    } catch (const E& cause) {
      return cause.what();
    } catch (...) {
      return error.what();
    }
  }
  return "nothing was thrown";
}

struct Point {
  float x, y, z;
};
struct Sums {
  float loss;
  std::int64_t examples;
  dist::Tensor<float> histogram;
};

// Functions of reductions, and a body, that kernels may call.
struct Product {
  DIST_HD constexpr auto operator()(auto a, auto b) const { return a * b; }
};
struct Larger {
  DIST_HD constexpr auto operator()(auto a, auto b) const { return a * a < b * b ? b : a; }
};
struct Two {
  DIST_HD float operator()(std::size_t) const { return 2.0f; }
};

template <class S>
void check_strategy_methods(S& strategy) {
  const std::size_t replicas = strategy.num_replicas_in_sync();
  const std::size_t local_replicas = strategy.num_local_replicas();
  const std::size_t first_replica = strategy.first_local_replica();
  const auto count = static_cast<float>(replicas);
  const float ids = count * (count - 1) / 2;  // 0 + 1 + … + replicas - 1

  SUBCASE("a tuple of results is a tuple of per-replica values, also nested, and can be passed back (C03, F05, F06)") {
    const auto [id, inside] = strategy.run([](auto& replica) {
      const auto r = static_cast<float>(replica.replica_id().index());
      return std::tuple{r, std::pair{std::array{r + 1, r + 2}, std::optional<int>{3}}};
    });
    CHECK(strategy.reduce(dist::sum, id) == ids);
    const auto& [numbers, three] = inside;
    for (std::size_t local = 0; local < local_replicas; ++local) {
      CHECK(value_on(local, id) == static_cast<float>(first_replica + local));
      CHECK(value_on(local, numbers[1]) == static_cast<float>(first_replica + local) + 2);
      CHECK(value_on(local, *three) == 3);
    }
    auto argument = std::tuple{id, std::pair{numbers[0], 7}, std::array{numbers[1]}};
    const auto back = strategy.run(
        [](auto& replica, const auto& mine) {
          const auto r = static_cast<float>(replica.replica_id().index());
          const auto& [one, two, three_of_them] = mine;
          return one == r && std::get<0>(two) == r + 1 && std::get<1>(two) == 7 && three_of_them[0] == r + 2;
        },
        argument);
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(value_on(local, back));
  }
  SUBCASE("structures and plain structs are reduced member by member (C03, C07)") {
    const auto sums = strategy.run([](auto& replica) {
      const auto r = replica.replica_id().index();
      return Sums{static_cast<float>(r), 2, counting({2}, static_cast<float>(r))};
    });
    const Sums total = strategy.reduce(dist::sum, sums);
    CHECK(total.loss == ids);
    CHECK(total.examples == 2 * static_cast<std::int64_t>(replicas));
    CHECK(elements_of(total.histogram) == std::vector<float>{ids, ids + count});
    const auto both = strategy.run([](auto& replica) {
      return std::array{static_cast<float>(replica.replica_id().index()), 1.0f};
    });
    CHECK(strategy.reduce(dist::sum, both) == std::array{ids, count});
    const auto [first, second] = strategy.reduce(dist::mean, std::tie(both[0], both[1]));
    CHECK(first == ids / count);
    CHECK(second == 1);
  }
  SUBCASE("local_results of a structure are the replicas' structures (C15)") {
    const auto both = strategy.run([](auto& replica) { return std::tuple{replica.replica_id().index(), 'x'}; });
    const auto results = strategy.local_results(both);
    REQUIRE(results.size() == local_replicas);
    for (std::size_t local = 0; local < local_replicas; ++local)
      CHECK(results[local] == std::tuple{first_replica + local, 'x'});
  }
  SUBCASE("the mean along an axis weights all elements equally (C09, C10, 4.1)") {
    // Replica r has r + 1 rows, all of the value r: the sum of r (r + 1) over the sum of (r + 1).
    const auto rows = strategy.run([](auto& replica) {
      dist::Tensor<float> mine{{replica.replica_id().index() + 1, 2}};
      for (float& element : mine.elements()) element = static_cast<float>(replica.replica_id().index());
      return mine;
    });
    float total = 0;
    float elements = 0;
    for (std::size_t r = 0; r < replicas; ++r) {
      total += static_cast<float>(r * (r + 1));
      elements += static_cast<float>(r + 1);
    }
    CHECK(elements_of(strategy.reduce(dist::sum, rows, 0)) == std::vector<float>{total, total});
    CHECK(elements_of(strategy.reduce(dist::mean, rows, 0)) == std::vector<float>{total / elements, total / elements});
    const dist::Tensor<float> all_values = strategy.reduce(dist::mean, rows, {0, 1});
    CHECK(all_values.shape() == dist::Shape{});
    CHECK(all_values[0] == total / elements);
    CHECK(strategy.reduce(dist::max, rows, {0, -1})[0] == count - 1);
    CHECK(refusal<dist::InvalidArgument>([&] {
            static_cast<void>(strategy.reduce(dist::sum, rows, 2));
          }).find("Axis 2 is out of range (the value has shape [1, 2], of rank 2)") == 0);
    CHECK_THROWS_AS(static_cast<void>(strategy.reduce(dist::sum, rows, -3)), dist::InvalidArgument);
    if (replicas > 1) CHECK_THROWS_AS(static_cast<void>(strategy.reduce(dist::sum, rows, 1)), dist::ShapeMismatch);
  }
  SUBCASE("a reduction along an axis also starts with the operation's identity (C09, C10)") {
    // Two rows on each replica: of 2 on the first, of 3 on the others.
    const auto rows = strategy.run([](auto& replica) {
      dist::Tensor<float> mine{{2, 1}};
      for (float& element : mine.elements()) element = replica.replica_id().index() == 0 ? 2 : 3;
      return mine;
    });
    CHECK(strategy.reduce(dist::min, rows, 0)[0] == 2);
    CHECK(strategy.reduce(dist::prod, rows, 0)[0] ==
          doctest::Approx(4 * std::pow(9.0, static_cast<double>(replicas - 1))));
    const auto below = strategy.run([](auto& replica) {
      dist::Tensor<int> mine{{1}};
      mine[0] = -5 - static_cast<int>(replica.replica_id().index());
      return mine;
    });
    CHECK(strategy.reduce(dist::max, below, 0)[0] == -5);
  }
  SUBCASE("an axis in the middle, and values without elements (C09, C10)") {
    const auto cubes = strategy.run([](auto& replica) {
      return counting({2, replica.replica_id().index() == 0 ? std::size_t{3} : std::size_t{0}, 2});
    });
    // Only replica 0 has elements: 0 … 11 as [2, 3, 2].
    CHECK(elements_of(strategy.reduce(dist::sum, cubes, 1)) ==
          std::vector<float>{0 + 2 + 4, 1 + 3 + 5, 6 + 8 + 10, 7 + 9 + 11});
    CHECK(elements_of(strategy.reduce(dist::mean, cubes, 1)) == std::vector<float>{2, 3, 8, 9});
  }
  SUBCASE("gather concatenates the values along an axis, in replica order (C14)") {
    const auto rows = strategy.run([](auto& replica) {
      return counting({replica.replica_id().index() + 1, 2}, static_cast<float>(10 * replica.replica_id().index()));
    });
    std::vector<float> expected;
    for (std::size_t r = 0; r < replicas; ++r)
      for (std::size_t i = 0; i < 2 * (r + 1); ++i) expected.push_back(static_cast<float>(10 * r + i));
    const dist::Tensor<float> gathered = strategy.gather(rows, 0);
    CHECK(gathered.shape() == dist::Shape{replicas * (replicas + 1) / 2, 2});
    CHECK(elements_of(gathered) == expected);

    const auto columns = strategy.run([](auto& replica) {
      return counting({2, 1 + replica.replica_id().index() % 2}, static_cast<float>(10 * replica.replica_id().index()));
    });
    expected.clear();
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t r = 0; r < replicas; ++r)
        for (std::size_t i = 0; i < 1 + r % 2; ++i)
          expected.push_back(static_cast<float>(10 * r + row * (1 + r % 2) + i));
    CHECK(elements_of(strategy.gather(columns, -1)) == expected);
  }
  SUBCASE("gather refuses scalars, axes out of range, and other differences (C14)") {
    const auto scalars = strategy.run([](auto&) { return dist::Tensor<float>{dist::Shape{}}; });
    CHECK(refusal<dist::ShapeMismatch>([&] {
            static_cast<void>(strategy.gather(scalars, 0));
          }).find("The value of replica 0 cannot be concatenated with others (it is a scalar)") == 0);
    const auto rows = strategy.run([](auto&) { return counting({2, 2}); });
    CHECK_THROWS_AS(static_cast<void>(strategy.gather(rows, 2)), dist::InvalidArgument);
    if (replicas > 1) {
      const auto ragged = strategy.run([](auto& replica) { return counting({2, 1 + replica.replica_id().index()}); });
      CHECK(refusal<dist::ShapeMismatch>([&] { static_cast<void>(strategy.gather(ragged, 0)); })
                .find("The values of replica 0 and replica 1 cannot be concatenated (shapes [2, 1] and [2, 2] along "
                      "axis 0)") == 0);
      const auto ranks = strategy.run([](auto& replica) {
        return replica.replica_id().index() == 0 ? counting({2, 2}) : counting({2});
      });
      CHECK_THROWS_AS(static_cast<void>(strategy.gather(ranks, 0)), dist::ShapeMismatch);
    }
  }
  SUBCASE("all_gather returns to every replica the result of gather (E06)") {
    for (const int axis : {0, 1, -1}) {
      const auto extent = [&](std::size_t r, int a) {
        return a == axis || (axis == -1 && a == 1) ? r % 3 : std::size_t{2};
      };
      const auto of = [&](std::size_t r) {
        return counting({extent(r, 0), extent(r, 1)}, static_cast<float>(100 * r));
      };
      const auto all =
          strategy.run([&](auto& replica) { return replica.all_gather(of(replica.replica_id().index()), axis); });
      const dist::Tensor<float> expected = strategy.gather(per_local_replica(strategy, of), axis);
      for (std::size_t local = 0; local < local_replicas; ++local) {
        CHECK(value_on(local, all).shape() == expected.shape());
        CHECK(elements_of(value_on(local, all)) == elements_of(expected));
      }
    }
    if (replicas > 1) {
      const auto other_axis = [](auto& replica) {
        static_cast<void>(replica.all_gather(counting({2, 2}), replica.replica_id().index() == 1 ? 1 : 0));
      };
      CHECK(refusal<dist::CollectiveMismatch>([&] {
              strategy.run(other_axis);
            }).find("replica 0 called all_gather along axis 0, but replica 1 along axis 1") != std::string::npos);
    }
    if (replicas > 1) {
      const auto ragged = [](auto& replica) {
        static_cast<void>(replica.all_gather(counting({2, 1 + replica.replica_id().index()}), 0));
      };
      CHECK(refusal<dist::ShapeMismatch>([&] { strategy.run(ragged); }).find("cannot be concatenated") !=
            std::string::npos);
    }
    const auto scalar = [](auto& replica) {
      static_cast<void>(replica.all_gather(dist::Tensor<float>{dist::Shape{}}, 0));
    };
    CHECK(refusal<dist::ShapeMismatch>([&] { strategy.run(scalar); }).find("it is a scalar") != std::string::npos);
  }
  SUBCASE("all_reduce takes tensors and structures (E03)") {
    const auto reduced = strategy.run([](auto& replica) {
      const auto r = static_cast<float>(replica.replica_id().index());
      return replica.all_reduce(dist::sum, std::tuple{r, counting({3}, r), std::array<float, 2>{1.0f, 2.0f}});
    });
    const auto& [number, tensor, numbers] = reduced;
    for (std::size_t local = 0; local < local_replicas; ++local) {
      CHECK(value_on(local, number) == ids);
      CHECK(elements_of(value_on(local, tensor)) == std::vector<float>{ids, ids + count, ids + 2 * count});
      CHECK(value_on(local, numbers[1]) == 2 * count);
    }
  }
  SUBCASE("contiguous ranges of numbers are reduced in place, values and temporaries are returned (E03)") {
    const auto right = strategy.run([&](auto& replica) {
      const auto r = static_cast<float>(replica.replica_id().index());
      std::vector<float> numbers{r, 1};
      replica.all_reduce(dist::sum, numbers);
      replica.all_reduce(dist::max, numbers, {.timeout = std::chrono::minutes{1}});
      float three[] = {r, -r, 2};
      replica.all_reduce(dist::mean, three);
      std::vector<std::complex<float>> waves{{r, 1}, {2, -r}};
      replica.all_reduce(dist::sum, waves);
      std::vector<Point> points{{1, 2, 3}, {r, r, -r}};
      replica.all_reduce(dist::min, points);
      const std::vector<float> returned = replica.all_reduce(dist::sum, std::vector<float>{3, r});
      const std::array<float, 2> pair = replica.all_reduce(dist::sum, std::array<float, 2>{r, 2.0f});
      const std::complex<double> wave = replica.all_reduce(dist::mean, std::complex<double>{r, -2});
      return numbers == std::vector<float>{ids, count} && three[0] == (count - 1) / 2 && three[1] == (1 - count) / 2 &&
             three[2] == 2 && waves[0] == std::complex<float>{ids, count} &&
             waves[1] == std::complex<float>{2 * count, -ids} && points[0].z == 3 && points[1].x == 0 &&
             points[1].z == 1 - count && returned == std::vector<float>{3 * count, ids} &&
             pair == std::array{ids, 2 * count} && wave == std::complex<double>{(count - 1.0) / 2, -2};
    });
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(value_on(local, right));
  }
  SUBCASE("plain structs are reduced member by member, for all kinds of members (E03)") {
    struct Mixed {
      float number;
      std::int64_t steps;
      std::complex<float> wave;
      std::vector<float> numbers;
      std::pair<dist::Tensor<float>, Point> inside;
    };
    const auto right = strategy.run([&](auto& replica) {
      const auto r = static_cast<float>(replica.replica_id().index());
      const Mixed all = replica.all_reduce(dist::sum, Mixed{r, 2, {1, r}, {r, 4}, {counting({2}, r), {1, 2, r}}});
      return all.number == ids && all.steps == 2 * static_cast<std::int64_t>(replicas) &&
             all.wave == std::complex<float>{count, ids} && all.numbers == std::vector<float>{ids, 4 * count} &&
             elements_of(all.inside.first) == std::vector<float>{ids, ids + count} &&
             all.inside.second.y == 2 * count && all.inside.second.z == ids;
    });
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(value_on(local, right));
  }
  SUBCASE("reduce and gather accept ranges and complex numbers (C07, C14)") {
    const auto [numbers, wave, points] = strategy.run([](auto& replica) {
      const auto r = static_cast<float>(replica.replica_id().index());
      return std::tuple{std::vector<float>{r, 1}, std::complex<float>{r, 2}, std::vector<Point>{{1, r, 2}}};
    });
    CHECK(strategy.reduce(dist::sum, numbers) == std::vector<float>{ids, count});
    CHECK(strategy.reduce(dist::sum, wave) == std::complex<float>{ids, 2 * count});
    const std::vector<Point> most = strategy.reduce(dist::max, points);
    REQUIRE(most.size() == 1);
    CHECK(most[0].y == count - 1);
    CHECK(strategy.reduce(dist::sum, numbers, 0)[0] == ids + count);
    const dist::Tensor<float> gathered = strategy.gather(numbers, 0);
    REQUIRE(gathered.shape() == dist::Shape{2 * replicas});
    CHECK(gathered[2 * replicas - 2] == count - 1);
    CHECK(strategy.gather(points, 0).shape() == dist::Shape{replicas, 3});
    const auto everywhere = strategy.run([](auto& replica) {
      return replica.all_gather(std::vector<float>{static_cast<float>(replica.replica_id().index())}, 0);
    });
    for (std::size_t local = 0; local < local_replicas; ++local)
      CHECK(elements_of(value_on(local, everywhere)) == elements_of(counting({replicas})));
    if (replicas > 1) {
      const auto ragged =
          strategy.run([](auto& replica) { return std::vector<float>(1 + replica.replica_id().index()); });
      CHECK_THROWS_AS(static_cast<void>(strategy.reduce(dist::sum, ragged)), dist::ShapeMismatch);
    }
  }
  SUBCASE("functions are reductions, with an explicit identity (E03, H01)") {
    const auto product = dist::reduction(Product{}, 1);
    const auto larger = dist::reduction(Larger{}, 0);
    const auto right = strategy.run([&](auto& replica) {
      const auto r = static_cast<float>(replica.replica_id().index());
      dist::Tensor<double> tensor{{5}};
      for (double& element : tensor.elements()) element = 2;
      std::vector<int> numbers{1, -1 - static_cast<int>(replica.replica_id().index())};
      replica.all_reduce(larger, numbers);
      // A reduction of no elements returns the identity.
      const auto of_none = replica.transform_reduce(product, {0, 0}, Two{});
      return replica.all_reduce(product, 2.0f) == std::exp2(count) &&
             replica.all_reduce(product, tensor)[4] == std::exp2(count) &&
             replica.all_reduce(larger, 1 - 3 * r) == (replicas == 1 ? 1 : 4 - 3 * count) && numbers[0] == 1 &&
             numbers[1] == -static_cast<int>(replicas) && of_none == 1 &&
             replica.all_reduce(product, dist::Float16{2}) == dist::Float16{std::exp2(count)};
    });
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(value_on(local, right));
    const auto twos = strategy.run([](auto&) {
      dist::Tensor<float> two{{1, 2}};
      two[0] = two[1] = 2;
      return std::tuple{2.0f, std::move(two)};
    });
    CHECK(strategy.reduce(product, std::get<0>(twos)) == std::exp2(count));
    CHECK(strategy.reduce(product, std::get<1>(twos), 0)[1] == std::exp2(count));
  }
  SUBCASE("indexed slices of all replicas are concatenated (E03, C07, H10)") {
    const auto slices_of = [](std::size_t r) {
      dist::IndexedSlices<float> slices(1 + r % 2, {4, 1});
      for (std::size_t row = 0; row < slices.rows(); ++row) {
        slices.indices()[row] = static_cast<std::int64_t>((r + row) % 4);
        slices.values()[row] = static_cast<float>(r);
      }
      return slices;
    };
    std::vector<std::int64_t> indices;
    std::vector<float> sums;
    std::vector<float> means;
    for (std::size_t r = 0; r < replicas; ++r)
      for (std::size_t row = 0; row < 1 + r % 2; ++row) {
        indices.push_back(static_cast<std::int64_t>((r + row) % 4));
        sums.push_back(static_cast<float>(r));
        means.push_back(static_cast<float>(r) / count);
      }
    const auto shows = [&](const dist::IndexedSlices<float>& all, const std::vector<float>& values) {
      return std::vector(all.indices().begin(), all.indices().end()) == indices &&
             std::vector<float>(all.values().data(), all.values().data() + all.values().size()) == values;
    };
    const auto mine = strategy.run([&](auto& replica) { return slices_of(replica.replica_id().index()); });
    CHECK(shows(strategy.reduce(dist::sum, mine), sums));
    CHECK(shows(strategy.reduce(dist::mean, mine), means));
    const auto right = strategy.run([&](auto& replica) {
      const auto slices = slices_of(replica.replica_id().index());
      return shows(replica.all_reduce(dist::sum, slices), sums) &&
             shows(replica.all_reduce(dist::mean, slices.view()), means) &&
             shows(std::get<0>(replica.all_reduce(dist::sum, std::tuple{slices, 1})), sums);
    });
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(value_on(local, right));
  }
  SUBCASE("broadcast copies one replica's value to all") {
    for (const std::size_t root : {std::size_t{0}, replicas - 1}) {
      const auto right = strategy.run([&](auto& replica) {
        const std::size_t me = replica.replica_id().index();
        const auto r = static_cast<float>(me);
        std::vector<float> numbers(40, r);
        replica.broadcast(numbers, root);
        const auto tensor = replica.broadcast(counting({me + 1, 2}, r), root);
        const auto [one, two] = replica.broadcast(std::pair{me, std::array{r, r + 1}}, root);
        const auto given = replica.broadcast(me == root ? std::optional{r} : std::nullopt, root);
        const auto none = replica.broadcast(me == root ? std::nullopt : std::optional{r}, root);
        const auto from = static_cast<float>(root);
        return numbers == std::vector<float>(40, from) && replica.broadcast(2 * me + 1, root) == 2 * root + 1 &&
               tensor.shape() == dist::Shape{root + 1, 2} && tensor[1] == from + 1 && one == root &&
               two[1] == from + 1 && given == from && !none.has_value() && replica.broadcast(me == root, root);
      });
      for (std::size_t local = 0; local < local_replicas; ++local) CHECK(value_on(local, right));
    }
    CHECK(refusal<dist::InvalidArgument>([&] {
            strategy.run([&](auto& replica) { static_cast<void>(replica.broadcast(1, replicas)); });
          }).find("The root of a broadcast is out of range") != std::string::npos);
  }
  SUBCASE("values whose structures differ are refused, and later calls still match (E03, E12)") {
    if (replicas > 1) {
      const auto sums_are_right = [&] {
        const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1.0F); });
        return value_on(0, sums) == count && strategy.reduce(dist::max, sums) == count;
      };
      for (const bool first_has_it : {true, false}) {
        const auto of = [&](auto& replica) {
          return (replica.replica_id().index() == 0) == first_has_it ? std::optional{1.0F} : std::optional<float>{};
        };
        CHECK(refusal<dist::ShapeMismatch>([&] {
                strategy.run([&](auto& replica) {
                  static_cast<void>(replica.all_reduce(dist::sum, std::tuple{2.0F, of(replica)}));
                });
              }).find("The replicas gave values with different structures (on replica 0 optional 0 has ") == 0);
        CHECK(sums_are_right());
      }
      CHECK(refusal<dist::CollectiveMismatch>([&] {
              strategy.run([](auto& replica) {
                if (replica.replica_id().index() == 0)
                  static_cast<void>(replica.all_reduce(dist::sum, std::tuple{1.0F, counting({2})}));
                else
                  static_cast<void>(replica.all_reduce(dist::sum, std::tuple{1.0F}));
              });
            }).find("part of values with a different structure") != std::string::npos);
      CHECK(sums_are_right());
    }
  }
  SUBCASE("tensors of different shapes are not reduced, even if they have equal sizes (H09)") {
    if (replicas > 1) {
      const auto turned = [](auto& replica) {
        const bool last = replica.replica_id().index() == 1;
        static_cast<void>(replica.all_reduce(
            dist::sum, counting({last ? std::size_t{3} : std::size_t{2}, last ? std::size_t{2} : std::size_t{3}})));
      };
      CHECK(refusal<dist::ShapeMismatch>([&] {
              strategy.run(turned);
            }).find("The tensors of replicas 0 and 1 cannot be reduced (shapes [2, 3] and [3, 2])") == 0);
      const auto cut = [](auto& replica) {
        dist::Tensor<float> memory = counting({5});
        const std::size_t first = replica.replica_id().index() == 1 ? 3 : 2;
        const std::array tensors{memory.elements().first(first), memory.elements().subspan(first)};
        replica.all_reduce(dist::sum, std::span<const std::span<float>>{tensors});
      };
      CHECK(refusal<dist::ShapeMismatch>([&] {
              strategy.run(cut);
            }).find("2 and 2 tensors, some of which differ in extent") != std::string::npos);
    }
  }
  SUBCASE("several tensors are reduced at once, in place, with any packing (E03, H09, H12)") {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
      const auto wrong = strategy.run([&](auto& replica) {
        const auto r = static_cast<float>(replica.replica_id().index());
        dist::Tensor<float> first = counting({40}, r);
        dist::Tensor<float> second = counting({3, 3}, r);
        const std::array tensors{first.elements(), second.elements()};
        replica.all_reduce(dist::sum, std::span<const std::span<float>>{tensors}, {.bytes_per_pack = bytes});
        return first[7] != ids + 7 * count || second[8] != ids + 8 * count;
      });
      for (std::size_t local = 0; local < local_replicas; ++local) CHECK(!value_on(local, wrong));
    }
  }
  SUBCASE(
      "merge_call calls its function once per worker, outside replica functions, and returns the result to all (E08, "
      "E09, B05)") {
    auto total = strategy.template variable<float, dist::OnRead, dist::Sum>({}, 0.0f, "total");
    int calls = 0;
    const auto merged = strategy.run([&](auto& replica) {
      return replica.merge_call(
          [&](auto& scope, const auto& given, const auto& same) {
            ++calls;
            CHECK(scope.num_replicas_in_sync() == replicas);
            total.assign(scope, strategy.reduce(dist::sum, given));
            return total.value(strategy.scope()) + static_cast<float>(value_on(0, same));
          },
          static_cast<float>(replica.replica_id().index()), 5);
    });
    CHECK(calls == 1);
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(value_on(local, merged) == ids + 5);
    strategy.run([&](auto& replica) { replica.merge_call([&](auto&) { ++calls; }); });
    CHECK(calls == 2);
  }
  SUBCASE("each replica gets its own value of merge_call's per-replica result (E08)") {
    const auto doubled = strategy.run([&](auto& replica) {
      return replica.merge_call(
          [&](auto&, const auto& given) {
            if constexpr (S::wraps_values) {
              return dist::PerReplica<std::size_t>(given.size(), [&](std::size_t r) { return 2 * given[r]; });
            } else {
              return 2 * given;
            }
          },
          replica.replica_id().index());
    });
    for (std::size_t local = 0; local < local_replicas; ++local)
      CHECK(value_on(local, doubled) == 2 * (first_replica + local));
  }
  SUBCASE("each replica gets its own value of a structure from merge_call, as a copy (E08)") {
    const auto both = strategy.run([&](auto& replica) {
      return replica.merge_call(
          [&](auto&, const auto& given) {
            const std::string shared = "shared";
            return std::tuple{given, std::pair{given, shared}};
          },
          static_cast<int>(replica.replica_id().index()));
    });
    const auto& [mine, inside] = both;
    for (std::size_t local = 0; local < local_replicas; ++local) {
      CHECK(value_on(local, mine) == static_cast<int>(first_replica + local));
      CHECK(value_on(local, std::get<0>(inside)) == static_cast<int>(first_replica + local));
      CHECK(value_on(local, std::get<1>(inside)) == "shared");
    }
  }
  SUBCASE("a mismatch of types in merge_call or variable is reported (E08, B15)") {
    // merge_call synchronises the replicas of a process.
    if (local_replicas > 1) {
      const auto other_type = [](auto& replica) {
        if (replica.local_index() == 1)
          replica.merge_call([](auto&, const auto&) {}, 1L);
        else
          replica.merge_call([](auto&, const auto&) {}, std::string("a"));
      };
      CHECK(refusal<dist::CollectiveMismatch>([&] {
              strategy.run(other_type);
            }).find("called merge_call(std::tuple<long") != std::string::npos);
      const auto other_variable = [&](auto& replica) {
        if (replica.local_index() == 1)
          static_cast<void>(strategy.template variable<int>(replica, {2}));
        else
          static_cast<void>(strategy.template variable<float>(replica, {2}));
      };
      CHECK(refusal<dist::CollectiveMismatch>([&] { strategy.run(other_variable); }).find("DistributedVariable<int") !=
            std::string::npos);
    }
  }
  SUBCASE("a merge function that returns values for another number of replicas is refused (E08)") {
    if constexpr (S::wraps_values)
      CHECK(refusal<dist::WrongStrategy>([&] {
              strategy.run([&](auto& replica) {
                static_cast<void>(
                    replica.merge_call([&](auto&) { return dist::PerReplica<float>(local_replicas + 1); }));
              });
            }).find("merge_call's function returned per-replica values of another strategy") == 0);
  }
  SUBCASE("an exception in a merge function is reported once, and missing replicas are named (E08)") {
    CHECK(refusal<dist::InvalidArgument>([&] {
            strategy.run([&](auto& replica) {
              replica.merge_call([](auto&) { throw dist::InvalidArgument("It is empty", "no rows", "Add some"); });
            });
          }) == "It is empty (no rows). Add some.");
    if (local_replicas > 1)
      CHECK(refusal<dist::CollectiveMismatch>([&] {
              strategy.run([&](auto& replica) {
                if (replica.local_index() > 0) replica.merge_call([](auto&) {});
              });
            }).find("returned after") != std::string::npos);
    CHECK(strategy.reduce(dist::sum, strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1.0f); })) ==
          count * count);
  }
  SUBCASE("a variable created in a replica function is shared by all, with replica 0's value (B15, G06, G07)") {
    std::vector<const void*> made(local_replicas);
    const auto values = strategy.run([&](auto& replica) {
      const auto mine = static_cast<float>(replica.replica_id().index());
      auto variable = strategy.template variable<float, dist::OnWrite, dist::Sum>(replica, {2}, mine + 7, "inner");
      made[replica.local_index()] = variable.get();
      variable->assign_add(replica, 1.0f);
      return support::read_on_host(*variable, replica)[1];
    });
    for (std::size_t local = 0; local < local_replicas; ++local) {
      CHECK(made[local] == made[0]);
      CHECK(value_on(local, values) == 7 + count);
    }
    if (replicas > 1) {
      // Detected by the replicas of a process, or by the workers.
      const std::string message = refusal<dist::CollectiveMismatch>([&] {
        strategy.run([&](auto& replica) {
          const std::string name = replica.replica_id().index() == 0 ? "a" : "b";
          static_cast<void>(strategy.template variable<float>(replica, {2}, 0.0f, name));
        });
      });
      CAPTURE(message);
      CHECK(message.find("0 made 'a' of shape [2], ") != std::string::npos);
      CHECK(message.find(" 1 'b' of shape [2]") != std::string::npos);
      if constexpr (!has_workers<S>) CHECK(message.find("replica 0 made 'a'") != std::string::npos);
    }
  }
  SUBCASE("an initial value that the type cannot represent is refused; trainable may be set (G03)") {
    CHECK(refusal<dist::InvalidArgument>([&] {
            static_cast<void>(strategy.template variable<std::int8_t>({}, 300, "small"));
          }).find("Variable 'small' cannot hold the value given (300 is outside the range of i8)") == 0);
    CHECK(strategy.template variable<float>({}).trainable());
    CHECK(!strategy.template variable<float>({}, 0.0f, "fixed", dist::Trainable::no).trainable());
    CHECK(strategy.template variable<dist::Float16>({}, 1.5f).value(strategy.scope()) == dist::Float16{1.5f});
  }
  SUBCASE("update changes every copy, with its replica's value (D04, B06)") {
    auto variable = strategy.template variable<float>({2}, 1.0f, "updated");
    const std::size_t copies = variable.copies();
    const auto given =
        strategy.run([](auto& replica) { return static_cast<float>(10 * replica.replica_id().index()); });
    const auto expected = [&](std::size_t copy) {
      return 1 + static_cast<float>(10 * (first_replica + first_reader<S>(copy)));
    };
    strategy.update(
        variable, [&](auto& context, float mine) { variable.assign_add(context, mine); }, given);
    for (std::size_t copy = 0; copy < copies; ++copy)
      CHECK(support::component_on_host(variable, strategy.scope(), first_reader<S>(copy))[1] == expected(copy));
    const auto results =
        strategy.update(variable, [&](auto& context) { return support::read_on_host(variable, context)[0]; });
    for (std::size_t copy = 0; copy < copies; ++copy) CHECK(results[copy] == expected(copy));
    CHECK(results.size() == copies);
  }
  SUBCASE("in a replica function update changes the replica's copy (D04, E11)") {
    auto variable = strategy.template variable<float>({}, 1.0f, "updated");
    const auto given = strategy.run([](auto& replica) { return static_cast<float>(replica.replica_id().index() + 2); });
    const auto seen = strategy.run([&](auto& replica) {
      strategy.update(
          replica, variable, [&](auto& context, float mine) { variable.assign_add(context, mine); }, given);
      return variable.value(replica);
    });
    for (std::size_t local = 0; local < local_replicas; ++local)
      CHECK(value_on(local, seen) == 3 + static_cast<float>(first_replica + first_reader<S>(S::Store::copy_of(local))));
  }
  SUBCASE("values_from_function calls its function for each replica in order (C19, F04, I28)") {
    std::vector<std::size_t> order;
    const auto values = strategy.values_from_function([&](dist::ValueContext context) {
      CHECK(context.num_replicas_in_sync() == replicas);
      order.push_back(context.replica_id().index());
      return std::tuple{context.replica_id().index(), std::string(3, 'x')};
    });
    REQUIRE(order.size() == local_replicas);
    for (std::size_t local = 0; local < local_replicas; ++local) {
      CHECK(order[local] == first_replica + local);
      CHECK(value_on(local, std::get<0>(values)) == first_replica + local);
    }
    const auto passed = strategy.run(
        [](auto& replica, const auto& mine) { return std::get<0>(mine) == replica.replica_id().index(); }, values);
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(value_on(local, passed));
  }
  SUBCASE("a plain value is its own mean; its sum over several replicas is refused (C11)") {
    CHECK(strategy.reduce(dist::mean, 5.0) == 5.0);
    CHECK(strategy.reduce(dist::max, 5) == 5);
    CHECK(strategy.reduce(dist::sum, 0.0f) == 0.0f);
    CHECK(elements_of(strategy.reduce(dist::mean, counting({2, 2}), 0)) == std::vector<float>{1, 2});
    if constexpr (has_workers<std::remove_cvref_t<decltype(strategy)>>) {
      // Every worker passes its own value (C13).
      const auto workers = static_cast<int>(strategy.num_workers());
      CHECK(strategy.reduce(dist::sum, 5) == 5 * workers);
      CHECK(strategy.reduce(dist::max, static_cast<int>(strategy.worker_rank())) == workers - 1);
      CHECK(strategy.reduce(dist::sum, counting({2}))[1] == static_cast<float>(workers));
      CHECK(strategy.reduce(dist::sum, counting({2, 2}), 1)[1] == static_cast<float>(5 * workers));
    } else if (replicas == 1) {
      CHECK(strategy.reduce(dist::sum, 5) == 5);
      CHECK(elements_of(strategy.reduce(dist::sum, counting({2, 2}), 1)) == std::vector<float>{1, 5});
    } else {
      CHECK(refusal<dist::InvalidArgument>([&] {
              static_cast<void>(strategy.reduce(dist::sum, 5));
            }).find("reduce(sum) was given a value that is not per-replica") == 0);
      CHECK_THROWS_AS(static_cast<void>(strategy.reduce(dist::prod, 5)), dist::InvalidArgument);
      CHECK_THROWS_AS(static_cast<void>(strategy.reduce(dist::sum, counting({2, 2}), 1)), dist::InvalidArgument);
    }
  }
  SUBCASE("reduce and all_reduce of a variable combine its copies (C12, E04, G25, D09)") {
    auto weight = strategy.template variable<float>({2}, 3.0f, "weight");
    auto counts = strategy.template variable<float, dist::OnRead, dist::Mean>({2}, 0.0f, "counts");
    CHECK(strategy.owns(weight));
    CHECK(!S{}.owns(weight));
    CHECK(strategy.owns(strategy.template buffer<float>({2})));
    CHECK(elements_of(strategy.reduce(dist::mean, weight)) == std::vector<float>{3, 3});
    if constexpr (!S::Store::shared) {
      const auto sums = strategy.run([&](auto& replica) {
        counts.assign(replica, static_cast<float>(replica.replica_id().index() + 1));
        return replica.all_reduce(dist::sum, weight);
      });
      for (std::size_t local = 0; local < local_replicas; ++local)
        CHECK(elements_of(value_on(local, sums)) == std::vector<float>{3 * count, 3 * count});
      CHECK(elements_of(strategy.reduce(dist::sum, counts)) == std::vector<float>{ids + count, ids + count});
    }
  }
  SUBCASE("a strategy names the devices of its replicas (D11, C22)") {
    const std::vector<std::string> devices = strategy.worker_devices();
    REQUIRE(devices.size() == local_replicas);
    if constexpr (!has_workers<S>) {  // workers divide the devices of a machine among them
      const std::vector<std::size_t> placed =
          S::wraps_values ? S::Device::placement(replicas) : std::vector<std::size_t>{0};
      CHECK(devices[0] == S::Device::device_name(placed[0]));
      CHECK(devices[replicas - 1] == S::Device::device_name(placed[(replicas - 1) % placed.size()]));
    }
    const bool names_device = strategy.describe().find(devices[0]) != std::string::npos;
    if constexpr (!has_workers<S>) CHECK(names_device != std::is_same_v<S, dist::Default>);
  }
  SUBCASE("results can be copied to every replica, and to variables (D01, D02, D03)") {
    const auto mine = strategy.run([](auto& replica) { return static_cast<float>(replica.replica_id().index() + 1); });
    const auto everywhere = strategy.reduce_to(dist::sum, mine, dist::every_replica);
    REQUIRE(everywhere.size() == local_replicas);
    CHECK(everywhere[local_replicas - 1] == ids + count);
    CHECK(strategy.broadcast_to(2.5)[local_replicas - 1] == 2.5);

    auto first = strategy.template variable<float>({}, 0.0f, "first");
    auto second = strategy.template variable<float>({}, 0.0f, "second");
    const auto twice = strategy.run([](auto& replica) { return static_cast<float>(2 * replica.replica_id().index()); });
    strategy.batch_reduce_to(dist::max, std::tie(mine, first), std::tie(twice, second));
    CHECK(first.value(strategy.scope()) == count);
    CHECK(second.value(strategy.scope()) == 2 * (count - 1));
    const auto [sum_of_mine, sum_of_twice] = strategy.batch_reduce(dist::sum, mine, twice);
    CHECK(sum_of_mine == ids + count);
    CHECK(sum_of_twice == 2 * ids);
  }
  SUBCASE("methods for outside replica functions are refused inside them (B09)") {
    static_cast<void>(strategy.scope().strategy().scope());  // nesting has no effect (B07)
    if constexpr (S::wraps_values) {
      const auto inside = [&](auto&& call) {
        return refusal<dist::WrongStrategy>([&] { strategy.run([&](auto&) { call(); }); });
      };
      CHECK(inside([&] { static_cast<void>(strategy.scope()); }) ==
            "strategy.scope was called inside a replica function (it is for the cross-replica context, which sees all "
            "replicas at once). In a replica function use the replica context, or its merge_call.");
      CHECK(inside([&] {
              static_cast<void>(strategy.template variable<float>({2}));
            }).find("strategy.variable was called inside a replica function") == 0);
      CHECK(inside([&] {
              static_cast<void>(strategy.template variable<float>({2}, 3.0f));
            }).find("strategy.variable was called inside a replica function") == 0);
      CHECK(inside([&] {
              static_cast<void>(strategy.template buffer<float>({2}));
            }).find("strategy.buffer was called inside a replica function") == 0);
      CHECK(inside([&] { strategy.run([](auto&) {}); }).find("run was called during a run") == 0);
      CHECK(inside([&] {
              static_cast<void>(strategy.reduce(dist::max, 1));
            }).find("strategy.reduce was called inside a replica function") == 0);
      CHECK(inside([&] { static_cast<void>(strategy.gather(counting({2}), 0)); }).find("use all_gather") !=
            std::string::npos);
      CHECK(inside([&] { static_cast<void>(strategy.broadcast_to(1)); }).find("strategy.broadcast_to was called") == 0);
    }
  }
  SUBCASE("another strategy cannot be used inside replica functions, except in merge_call (B08)") {
    dist::Mirrored<dist::ThreadAllReduce> threads{1};
    dist::Default plain;
    if constexpr (S::wraps_values) {
      const auto inside = [&](auto&& call) {
        return refusal<dist::WrongStrategy>([&] { strategy.run([&](auto&) { call(); }); });
      };
      const auto refused = [](std::string_view method) {
        return dist::concat("strategy.", method,
                            " was called inside a replica function of another strategy (strategies ",
                            "cannot be nested: each replica would make this call separately). Call it outside run, or "
                            "use the strategy ",
                            "whose context the replica function received.");
      };
      CHECK(inside([&] { threads.run([](auto&) {}); }) == refused("run"));
      CHECK(inside([&] { plain.run([](auto&) {}); }) == refused("run"));
      CHECK(inside([&] { static_cast<void>(threads.scope()); }) == refused("scope"));
      CHECK(inside([&] { static_cast<void>(plain.scope()); }) == refused("scope"));
      CHECK(inside([&] { static_cast<void>(threads.template variable<float>({2})); }) == refused("variable"));
      CHECK(inside([&] { static_cast<void>(plain.template variable<float>({2})); }) == refused("variable"));
      CHECK(inside([&] { static_cast<void>(plain.reduce(dist::max, 1)); }) == refused("reduce"));
    }
    strategy.run([&](auto& replica) {
      replica.merge_call([&](auto&) {
        threads.run([](auto&) {});
        plain.run([](auto&) {});
        static_cast<void>(threads.scope());
      });
      replica.barrier();  // still in its replica function
    });
    threads.run([](auto&) {});
  }
  SUBCASE("arguments of another strategy are refused, also inside structures (B08, B14)") {
    const dist::PerReplica<int> other(local_replicas + 1);
    CHECK_THROWS_AS(strategy.run([](auto&, int) {}, other), dist::WrongStrategy);
    CHECK_THROWS_AS(strategy.run([](auto&, const auto&) {}, std::tuple{1, std::pair{other, 2}}), dist::WrongStrategy);
    CHECK_THROWS_AS(strategy.run([](auto&, const auto&) {}, std::optional{other}), dist::WrongStrategy);
    CHECK_THROWS_AS(strategy.reduce(dist::max, other), dist::WrongStrategy);
    CHECK_THROWS_AS(strategy.reduce(dist::sum, std::pair{other, other}), dist::WrongStrategy);
    const dist::PerReplica<dist::Tensor<float>> tensors(local_replicas + 1, [](std::size_t) { return counting({2}); });
    CHECK_THROWS_AS(strategy.reduce(dist::max, tensors, {0}), dist::WrongStrategy);
    CHECK_THROWS_AS(strategy.gather(tensors, 0), dist::WrongStrategy);
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("strategy methods", Maker, strategy_methods) {
  const auto made = Maker::make();
  conformance::check_strategy_methods(*made);
}
