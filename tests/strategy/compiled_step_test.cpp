#include <dist/strategy/compiled_step.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <support/four_xla_cpus.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;
using dist::PerReplica;
using dist::Shape;
using dist::Tensor;
using Floats = Tensor<float>;
using Strategy = dist::Mirrored<dist::ThreadAllReduce, dist::Xla>;

namespace {

/// Returns batches with the given numbers of rows of two numbers, 1, 2, 3, ..., consecutive across replicas.
template <std::size_t Replicas>
PerReplica<Floats> batches(const std::array<std::size_t, Replicas>& rows) {
  float next = 1;
  return PerReplica<Floats>(Replicas, [&](std::size_t replica) {
    Floats part{Shape{rows[replica], 2}};
    for (float& number : part.elements()) number = next++;
    return part;
  });
}

}  // namespace

TEST_CASE("a step computes with batches and variables at each call") {
  Strategy strategy{2};
  auto total = strategy.variable<float, dist::OnRead, dist::Sum>(Shape{}, 0.0F);
  auto weights = strategy.variable<float, dist::OnWrite, dist::Mean>(Shape{2}, 1.0F);
  auto step = strategy.compile([&](auto& replica, const auto& batch) {
    const auto x = batch.template as<hlo::batch, 2>();
    weights.assign_add(replica, hlo::reduce<0>(dist::sum, x));
    const auto sum = hlo::reduce(dist::sum, x);
    total.assign_add(replica, sum);
    return std::tuple{replica.all_reduce(dist::sum, sum), hlo::reduce<1>(dist::sum, x)};
  });
  const auto batch = batches<2>({2, 2});  // [1 2; 3 4] and [5 6; 7 8]
  const auto [sum, rows] = step(batch);
  static_assert(std::is_same_v<decltype(sum), const PerReplica<hlo::PendingNumber<float>>>);
  CHECK(strategy.reduce(dist::sum, sum) == 72);
  CHECK(rows[0] == Floats{{2}, {3, 7}});
  CHECK(rows[1] == Floats{{2}, {11, 15}});
  CHECK(total.value(strategy.scope()) == 36);
  CHECK(weights.whole(strategy.scope()) == Floats{{2}, {9, 11}});  // 1 + (4 + 12) / 2
  step(batch);
  weights.assign(strategy.scope(), 0.0F);  // on the host, between calls
  step(batch);
  CHECK(total.value(strategy.scope()) == 108);
  CHECK(weights.whole(strategy.scope()) == Floats{{2}, {8, 10}});
  CHECK(step.programs() == 1);
}

TEST_CASE("batches with fewer rows are padded, and the step has the number of valid rows") {
  Strategy strategy{3};
  auto step = strategy.compile([](auto& replica, const auto& batch) {
    const auto x = batch.template as<hlo::batch, 2>();
    const auto number = hlo::iota<hlo::Traced<std::int32_t, hlo::batch>, 0>();
    const auto counts = number < hlo::Traced<std::int32_t, hlo::batch>{replica.rows()};
    const auto sums = hlo::select(counts, hlo::reduce<1>(dist::sum, x), 0);
    return std::tuple{hlo::reduce(dist::sum, sums), replica.first_row(), x};
  });
  for (const auto& rows : {std::array<std::size_t, 3>{2, 2, 2}, {2, 1, 0}, {0, 0, 1}}) {
    const auto batch = batches<3>(rows);
    const auto [sums, firsts, same] = step(batch);
    std::int32_t first = 0;
    for (std::size_t replica = 0; replica < 3; ++replica) {
      CAPTURE(replica);
      float sum = 0;
      for (const float number : batch[replica].elements()) sum += number;
      CHECK(sums[replica] == sum);
      CHECK(firsts[replica] == first);
      CHECK(same[replica] == batch[replica]);
      first += static_cast<std::int32_t>(rows[replica]);
    }
  }
  CHECK(step.programs() == 1);
  static_cast<void>(step(batches<3>({1, 3, 2})));
  CHECK(step.programs() == 2);
}

TEST_CASE("arguments may be structures, numbers, and tensors that all replicas share") {
  Strategy strategy{2};
  using Example = dist::data::Example<Floats, Tensor<std::int32_t>>;
  auto step = strategy.compile([](auto&, const auto& batch, auto factor, const auto& shared, const auto& pair) {
    const auto x = batch.x.template as<hlo::batch, 2>();
    const auto y = batch.y.template as<hlo::batch>();
    const auto offset = hlo::broadcast<hlo::Traced<float, hlo::batch, 2>, 1>(shared.template as<2>());
    return std::pair{x * factor + offset, std::array{hlo::reduce(dist::sum, y), pair.first}};
  });
  const auto x = batches<2>({1, 1});
  const PerReplica<Example> batch(2, [&](std::size_t replica) {
    return Example{x[replica], Tensor<std::int32_t>{{1}, {static_cast<std::int32_t>(10 + replica)}}};
  });
  const auto [scaled, numbers] =
      step(batch, 2.0F, Floats{{2}, {100, 200}}, std::pair{PerReplica<std::int32_t>::of(7, 8), 0.0});
  CHECK(scaled[1] == Floats{{1, 2}, {106, 208}});
  CHECK(numbers[0][1] == 11);
  CHECK(numbers[1][0] == 7);
  CHECK(numbers[1][1] == 8);
}

TEST_CASE("plain tensors are the same for all replicas, and structures are read in place") {
  Strategy strategy{2};
  auto step = strategy.compile([](auto&, const auto& pair, const auto& array) {
    const auto x = pair.first.template as<hlo::batch, 2>();
    const auto factors = hlo::broadcast<hlo::Traced<float, hlo::batch, 2>, 1>(pair.second.template as<2>());
    return x * factors + array[0].template as<hlo::batch, 2>();
  });
  const auto x = batches<2>({2, 1});  // [1 2; 3 4] and [5 6]
  const auto sums = step(std::pair{x, Floats{{2}, {10, 100}}}, std::array{x});
  CHECK(sums[0] == Floats{{2, 2}, {11, 202, 33, 404}});
  CHECK(sums[1] == Floats{{1, 2}, {55, 606}});
}

TEST_CASE("a program cached in a folder is used by another step") {
  const support::TemporaryFolder folder;
  const auto call = [&] {
    Strategy strategy{2};
    auto step = strategy.compile(
        [](auto&, const auto& batch) { return hlo::reduce(dist::sum, batch.template as<hlo::batch, 2>()); },
        {.cache = folder.path()});
    CHECK(strategy.reduce(dist::sum, step(batches<2>({2, 2}))) == 36);
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{folder.path()}) files.push_back(entry.path());
    return files;
  };
  const auto files = call();
  CHECK(files.size() == 1);
  CHECK(call() == files);
}

TEST_CASE("with one unwrapped replica, a step takes and returns values unchanged") {
  dist::OneDevice<dist::Xla> strategy;
  auto count = strategy.variable<std::int64_t>(Shape{}, 5);
  auto step = strategy.compile([&](auto& replica, const auto& batch) {
    count.assign_add(replica, 1);
    return hlo::reduce(dist::sum, batch.template as<hlo::batch, 2>());
  });
  const float sum = step(Floats{{2, 2}, {1, 2, 3, 4}});
  CHECK(sum == 10);
  CHECK(count.value(strategy.scope()) == 6);
}

TEST_CASE("invalid arguments and results are refused") {
  Strategy strategy{2};
  auto step = strategy.compile(
      [](auto&, const auto& batch) { return hlo::reduce(dist::sum, batch.template as<hlo::batch, 2>()); },
      {.most_forms = 2});
  const auto refused = [&]<class Refusal>(std::type_identity<Refusal>, const auto& batch) {
    return support::what_throws<Refusal>([&] { static_cast<void>(step(batch)); });
  };
  const std::type_identity<dist::InvalidArgument> invalid{};
  const std::type_identity<dist::ShapeMismatch> mismatch{};
  CHECK(refused(invalid, batches<2>({0, 0})).find("A step cannot be compiled for a batch without rows") == 0);
  CHECK(
      refused(mismatch, PerReplica<Floats>::of(Floats{Shape{1, 2}}, Floats{Shape{1, 3}}))
          .find("The replicas of a compiled step were given different shapes ([2] and, on replica 1, [3], of a row)") ==
      0);
  CHECK(refused(mismatch, PerReplica<Floats>::of(Floats{Shape{1, 3}}, Floats{Shape{1, 3}}))
            .find("An array of a program has the wrong shape") == 0);
  CHECK(refused(std::type_identity<dist::WrongStrategy>{}, batches<3>({1, 1, 1})).find("3 values for 2 replicas") !=
        std::string::npos);
  CHECK(step.programs() == 0);
  static_cast<void>(step(batches<2>({1, 1})));
  static_cast<void>(step(batches<2>({2, 2})));
  CHECK(refused(invalid, batches<2>({3, 3}))
            .find("A compiled step has received more than 2 forms of arguments (the last one had [2, 2], and this call "
                  "has [3, 2])") == 0);
  CHECK(strategy.reduce(dist::sum, step(batches<2>({0, 0}))) == 0);

  Strategy other{2};
  auto variable = other.variable<float>(Shape{}, 0.0F);
  auto mixed = strategy.compile([&](auto& replica) { variable.assign(replica, 1.0F); });
  CHECK(support::what_throws<dist::WrongStrategy>([&] { mixed(); }).find("a strategy that did not make it") !=
        std::string::npos);
  CHECK_THROWS_AS(strategy.run([&](auto&) { static_cast<void>(step(batches<2>({1, 1}))); }), dist::ReplicaError);

  auto replaced = strategy.variable<float>(Shape{}, 0.0F, "first");
  auto counts = strategy.compile([&](auto& replica) { replaced.assign_add(replica, 1.0F); });
  counts();
  replaced = strategy.variable<float>(Shape{}, 0.0F, "second");
  CHECK(support::what_throws<dist::InvalidArgument>([&] { counts(); }).find("Variable 'first' was destroyed") == 0);
}
