#include <dist/variable/generator.hpp>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/strategy/central_storage.hpp>

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;

namespace {

/// Returns the numbers that each replica draws in a separate step.
template <class S>
std::vector<std::vector<double>> draw(S& strategy, dist::Generator<S>& random, std::size_t count) {
  std::vector<std::vector<double>> drawn(strategy.num_local_replicas(), std::vector<double>(count));
  strategy.run([&](auto& replica) { random.uniform(replica, std::span<double>{drawn[replica.local_index()]}); });
  return drawn;
}

/// Checks uniform numbers in [0, 1) for mean 1/2, variance 1/12, and correlation 0 with their successors, within five
/// standard errors.
void check_uniform(std::span<const double> numbers) {
  const auto count = static_cast<double>(numbers.size());
  double mean = 0;
  double variance = 0;
  double products = 0;
  bool inside = true;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    inside = inside && numbers[i] >= 0 && numbers[i] < 1;
    const double centred = numbers[i] - 0.5;
    mean += centred;
    variance += centred * centred;
    if (i > 0) products += centred * (numbers[i - 1] - 0.5);
  }
  CHECK(inside);
  CHECK(std::fabs(mean / count) < 5 * std::sqrt(1.0 / 12 / count));
  CHECK(std::fabs(variance / count - 1.0 / 12) < 5 * std::sqrt(1.0 / 180 / count));
  CHECK(std::fabs(products / count) < 5 / 12.0 / std::sqrt(count));
}

template <class S>
void compare(std::unique_ptr<S> owner) {
  S& strategy = *owner;
  CAPTURE(strategy.describe());
  const std::size_t replicas = strategy.num_local_replicas();
  dist::Generator random{strategy, 42};
  constexpr std::size_t count = 4000;
  const auto first = draw(strategy, random, count);
  const auto second = draw(strategy, random, count);
  std::vector<double> together;
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    check_uniform(first[replica]);
    together.insert(together.end(), first[replica].begin(), first[replica].end());
    CHECK(first[replica] != second[replica]);
    for (std::size_t other = 0; other < replica; ++other) {
      double correlation = 0;
      for (std::size_t i = 0; i < count; ++i) correlation += (first[replica][i] - 0.5) * (first[other][i] - 0.5);
      CHECK(std::fabs(correlation / count) < 5 / 12.0 / std::sqrt(static_cast<double>(count)));
    }
    CHECK(random.state(strategy.scope(), replica).drawn == 2 * count);
  }
  check_uniform(together);

  // A replica's stream is independent of the strategy and the number of replicas.
  dist::Default alone;
  const auto alone_scope = alone.scope();
  dist::Generator reference{alone, 42};
  CHECK(draw(alone, reference, count)[0] == first[0]);
  strategy.run([&](auto& replica) {
    const std::uint64_t stream = reference.state(alone_scope, 0).stream + replica.replica_id().index();
    CHECK(random.state(replica).stream == stream);
  });

  // Outside replica functions: replica 0's numbers, and all states advance equally.
  dist::Generator a{strategy, 7};
  dist::Generator b{strategy, 7};
  std::vector<double> outside(10);
  a.uniform(strategy.scope(), std::span<double>{outside});
  CHECK(outside == draw(strategy, b, 10)[0]);
  for (std::size_t replica = 0; replica < replicas; ++replica)
    CHECK(a.state(strategy.scope(), replica) == b.state(strategy.scope(), replica));
  CHECK(draw(strategy, a, 10) == draw(strategy, b, 10));
  a.skip(strategy.scope(), 5);
  strategy.run([&](auto& replica) { b.skip(replica, 5); });
  CHECK(draw(strategy, a, 10) == draw(strategy, b, 10));
}

}  // namespace

TEST_CASE("every replica draws from a separate stream under every strategy (spec R04)") {
  compare(std::make_unique<dist::Default>());
  compare(std::make_unique<dist::OneDevice<dist::Cpu>>());
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U}) {
    compare(std::make_unique<Mirrored>(replicas));
    compare(std::make_unique<Central>(replicas));
  }
}

TEST_CASE("states move between strategies and numbers of replicas (spec R04)") {
  Mirrored two{2};
  Central four{4};
  dist::Generator from{two, 1};
  static_cast<void>(draw(two, from, 100));
  dist::Generator to{four, 99};
  for (std::size_t replica = 0; replica < 2; ++replica)
    to.set_state(four.scope(), replica, from.state(two.scope(), replica));
  const auto expected = draw(two, from, 50);
  const auto restored = draw(four, to, 50);
  CHECK(restored[0] == expected[0]);
  CHECK(restored[1] == expected[1]);
  CHECK(restored[2] != restored[3]);
}

TEST_CASE("different seeds give different numbers") {
  dist::Default strategy;
  dist::Generator a{strategy, 1};
  dist::Generator b{strategy, 2};
  CHECK(draw(strategy, a, 10) != draw(strategy, b, 10));
}

TEST_CASE("normal numbers have the expected mean, deviation and tails") {
  Mirrored strategy{2};
  dist::Generator random{strategy, 3};
  constexpr std::size_t count = 20000;
  strategy.run([&](auto& replica) {
    std::vector<double> numbers(count);
    random.normal(replica, std::span<double>{numbers}, 2.0, 3.0);
    double mean = 0;
    double variance = 0;
    double outside = 0;
    for (const double number : numbers) {
      const double z = (number - 2) / 3;
      mean += z / count;
      variance += z * z / count;
      if (std::fabs(z) > 1.959963984540054) outside += 1.0 / count;
    }
    CHECK(std::fabs(mean) < 5 / std::sqrt(double{count}));
    CHECK(std::fabs(variance - 1) < 5 * std::sqrt(2.0 / count));
    CHECK(std::fabs(outside - 0.05) < 5 * std::sqrt(0.05 * 0.95 / count));
  });
}

TEST_CASE("integers are equally likely, up to the limits of their type") {
  dist::Default strategy;
  dist::Generator random{strategy, 4};
  const auto scope = strategy.scope();
  constexpr std::size_t count = 14000;
  std::vector<int> numbers(count);
  random.integers(scope, std::span<int>{numbers}, -3, 4);
  std::vector<double> seen(7);
  for (const int number : numbers) {
    REQUIRE((number >= -3 && number < 4));
    ++seen[static_cast<std::size_t>(number + 3)];
  }
  double chi_square = 0;
  for (const double times : seen) chi_square += (times - 2000) * (times - 2000) / 2000;
  CHECK(chi_square < 27.9);  // 6 degrees of freedom, 1 in 10000
  CHECK(random.integer<std::uint8_t>(scope, 254, 255) == 254);
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 100; ++i) {
    const auto number = random.integer<std::int64_t>(scope, INT64_MIN, INT64_MAX);
    negative = negative || number < 0;
    positive = positive || number > 0;
  }
  CHECK((negative && positive));
  CHECK_THROWS_WITH_AS(
      random.integer<int>(scope, 3, 3),
      "Generator::integers was given an empty range (from 3 to below 3). Give a high that is above low.",
      dist::InvalidArgument);
}

TEST_CASE("float ranges are half-open") {
  dist::Default strategy;
  dist::Generator random{strategy, 5};
  const float high = std::nextafter(1.0f, 2.0f);
  for (int i = 0; i < 1000; ++i) {
    const float number = [&] {
      float one = 0;
      random.uniform(strategy.scope(), std::span<float>{&one, 1}, 1.0f, high);
      return one;
    }();
    REQUIRE(number == 1.0f);
  }
  CHECK(random.uniform(strategy.scope()) < 1.0f);
  double one = 0;
  const std::span<double> numbers{&one, 1};
  random.uniform(strategy.scope(), numbers, 3.0, 3.0);
  CHECK(one == 3.0);
  CHECK_THROWS_WITH_AS(random.uniform(strategy.scope(), numbers, 3.0, 1.0),
                       "Generator::uniform was given an empty range (from 3 to below 1). Give a high that "
                       "is not below low.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(random.uniform(strategy.scope(), numbers, 0.0, std::nan("")), dist::InvalidArgument);
  CHECK(std::isfinite(random.normal<double>(strategy.scope())));
}

TEST_CASE("a restored generator continues under any strategy and number of replicas") {
  const auto draw = [](auto& strategy, auto& random) {
    std::vector<double> drawn(strategy.num_local_replicas());
    strategy.run([&](auto& replica) { drawn[replica.local_index()] = random.template uniform<double>(replica); });
    return drawn;
  };
  Mirrored four{4};
  dist::Generator random{four, 6};
  static_cast<void>(draw(four, random));
  const auto kept = random.whole(four.scope());
  CHECK(kept.shape() == dist::Shape{4, 3});
  const std::vector<double> expected = draw(four, random);

  Central two{2};
  dist::Generator fewer{two, 7};
  fewer.restore(two.scope(), kept);
  const auto kept_by_fewer = fewer.whole(two.scope());  // including the states of replicas 2 and 3
  CHECK(kept_by_fewer == kept);
  CHECK(draw(two, fewer) == std::vector<double>(expected.begin(), expected.begin() + 2));

  dist::Generator again{four, 8};
  again.restore(four.scope(), kept_by_fewer);
  CHECK(draw(four, again) == expected);

  Mirrored six{6};  // new replicas start new streams
  dist::Generator more{six, 9};
  dist::Generator fresh{six, 6};
  more.restore(six.scope(), kept);
  const std::vector<double> of_more = draw(six, more);
  const std::vector<double> of_fresh = draw(six, fresh);
  CHECK(std::vector<double>(of_more.begin(), of_more.begin() + 4) == expected);
  CHECK(std::vector<double>(of_more.begin() + 4, of_more.end()) ==
        std::vector<double>(of_fresh.begin() + 4, of_fresh.end()));

  dist::Default one;
  dist::Generator alone{one, 10};
  alone.restore(one.scope(), kept);
  CHECK(alone.uniform<double>(one.scope()) == expected[0]);
  CHECK_THROWS_AS(alone.restore(one.scope(), dist::Tensor<std::uint64_t>{{3}}), dist::ShapeMismatch);
  CHECK_THROWS_AS(alone.restore(one.scope(), dist::Tensor<std::uint64_t>{{0, 3}}), dist::ShapeMismatch);
}
