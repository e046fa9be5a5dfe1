#include <dist/nn/slices_optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/central_storage.hpp>
#include <support/saved.hpp>

#include "support/allocations.hpp"
#include "support/unshared.hpp"

namespace nn = dist::nn;

namespace {

constexpr std::size_t table_rows = 9;
constexpr std::size_t row_size = 3;

/// Replica r has r + 1 rows in step s, or none if s is 2 and r is 0; indices repeat within and between replicas.
std::size_t rows_given(std::size_t rank, int step) { return step == 2 && rank == 0 ? 0 : rank + 1; }
std::int64_t index_given(std::size_t rank, int step, std::size_t row) {
  return static_cast<std::int64_t>((rank * 2 + row * 4 + static_cast<std::size_t>(step)) % (table_rows - 1));
}
double value_given(std::size_t rank, int step, std::size_t row, std::size_t k) {
  return 0.25 * static_cast<double>(rank + 1) - 0.125 * static_cast<double>(row + k) + 0.5 * step;
}

/// Adam in plain loops on the rows that have a gradient; SGD if `moments` is false.
struct Reference {
  bool moments;
  std::vector<double> w = std::vector<double>(table_rows * row_size, 1.0);
  std::vector<double> m = std::vector<double>(table_rows * row_size);
  std::vector<double> v = std::vector<double>(table_rows * row_size);

  void step(std::size_t replicas, int step) {
    std::vector<double> gradient(table_rows * row_size);
    std::vector<bool> named(table_rows);
    for (std::size_t rank = 0; rank < replicas; ++rank)
      for (std::size_t row = 0; row < rows_given(rank, step); ++row) {
        const auto index = static_cast<std::size_t>(index_given(rank, step, row));
        named[index] = true;
        for (std::size_t k = 0; k < row_size; ++k) gradient[index * row_size + k] += value_given(rank, step, row, k);
      }
    const double t = step + 1;
    const double beta_1{0.9f};
    const double beta_2{0.999f};
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (!named[i / row_size]) continue;
      const double g = gradient[i];
      if (!moments) {
        w[i] -= 0.125 * g;
        continue;
      }
      m[i] += (1 - beta_1) * (g - m[i]);
      v[i] += (1 - beta_2) * (g * g - v[i]);
      w[i] -= 0.125 * std::sqrt(1 - std::pow(beta_2, t)) / (1 - std::pow(beta_1, t)) * m[i] /
              (std::sqrt(v[i]) + double{1e-7f});
    }
  }
};

template <class S, class O>
void compare(std::unique_ptr<S> owner, const O& function, bool moments) {
  S& strategy = *owner;
  CAPTURE(strategy.describe());
  auto table = strategy.template variable<double>(dist::Shape{table_rows, row_size}, 1.0, "table");
  nn::SlicesOptimizer optimizer{strategy, table, function};
  Reference reference{moments};
  for (int step = 0; step < 4; ++step) {
    strategy.run([&](auto& replica) {
      const std::size_t rank = replica.replica_id().index();
      dist::IndexedSlices<double> slices(rows_given(rank, step), table.shape());
      for (std::size_t row = 0; row < slices.rows(); ++row) {
        slices.indices()[row] = index_given(rank, step, row);
        for (std::size_t k = 0; k < row_size; ++k) slices.values()(row, k) = value_given(rank, step, row, k);
      }
      optimizer.apply_slices(replica, slices.view());
    });
    reference.step(strategy.num_replicas_in_sync(), step);
  }
  CHECK(optimizer.iterations(strategy.scope()) == 4);
  for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
    double worst = 0;
    const auto copy = table.component(strategy.scope(), local);
    for (std::size_t i = 0; i < copy.size(); ++i) worst = std::fmax(worst, std::fabs(copy[i] - reference.w[i]));
    CHECK(worst < 1e-12);
    CHECK(copy[(table_rows - 1) * row_size] == 1.0);  // without a gradient
  }
}

template <class O>
void compare_all(const O& function, bool moments) {
  compare(std::make_unique<dist::Default>(), function, moments);
  compare(std::make_unique<dist::OneDevice<dist::Cpu>>(), function, moments);
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U}) {
    compare(std::make_unique<dist::Mirrored<dist::ThreadAllReduce>>(replicas), function, moments);
    compare(std::make_unique<dist::CentralStorage<dist::Cpu>>(replicas), function, moments);
  }
}

}  // namespace

TEST_CASE("rows with equal indices are summed before the update, within and between replicas (spec H10, P14)") {
  compare_all(nn::SGD{.learning_rate = 0.125f}, false);
  compare_all(nn::Adam{.learning_rate = 0.125f}, true);
}

TEST_CASE("rows with equal indices are summed between replicas without shared memory (spec H10, P14)") {
  for (const std::size_t replicas : {1U, 2U, 3U})
    compare(std::make_unique<dist::Mirrored<testing::Unshared>>(replicas), nn::SGD{.learning_rate = 0.125f}, false);
}

TEST_CASE("slices of another shape and scalars are rejected") {
  dist::Default strategy;
  auto table = strategy.variable<float>(dist::Shape{4, 2}, 0.0f, "table");
  nn::SlicesOptimizer optimizer{strategy, table, nn::SGD{}};
  const dist::IndexedSlices<float> slices(0, dist::Shape{4, 3});
  CHECK_THROWS_WITH_AS(strategy.run([&](auto& replica) { optimizer.apply_slices(replica, slices.view()); }),
                       "Indexed slices do not fit variable 'table' (they belong to an array of shape [4, 3], the "
                       "variable has shape [4, 2]). Give slices of an array of the variable's shape.",
                       dist::ShapeMismatch);
  auto scalar = strategy.variable<float>({}, 0.0f, "scalar");
  CHECK_THROWS_AS((nn::SlicesOptimizer{strategy, scalar, nn::SGD{}}), dist::ShapeMismatch);
  CHECK_THROWS_AS((nn::SlicesOptimizer{strategy, table, nn::SGD{.learning_rate = -1}}), dist::InvalidArgument);
}

TEST_CASE("variables that are not trainable are rejected, but can be assigned (spec G03)") {
  dist::Default strategy;
  auto fixed = strategy.variable<float, dist::OnWrite, dist::None>({4, 2}, 0.0f, "table", dist::Trainable::no);
  CHECK_THROWS_WITH_AS((nn::SlicesOptimizer{strategy, fixed, nn::SGD{}}),
                       "An optimizer was given variable 'table', which is not trainable (it was made with "
                       "Trainable::no, or OnRead). Make it with Trainable::yes to train it.",
                       dist::InvalidArgument);
  fixed.assign(strategy.scope(), 2);
  CHECK(fixed.read(strategy.scope())(3, 1) == 2);
}

TEST_CASE("apply_slices accepts owning slices, and a single copy with any synchronization") {
  dist::CentralStorage<dist::Cpu> strategy{2};
  auto table = strategy.variable<float, dist::OnRead, dist::Sum>({4, 2}, 1.0f, "table", dist::Trainable::yes);
  nn::SlicesOptimizer optimizer{strategy, table, nn::SGD{.learning_rate = 0.5f}};
  strategy.run([&](auto& replica) {
    dist::IndexedSlices<float> slices{1, table.shape()};
    slices.indices()[0] = 2;
    for (float& value : slices.values().elements()) value = 3;
    optimizer.apply_slices(replica, slices);
  });
  CHECK(table.read(strategy.scope())(2, 0) == 1 - 0.5f * (3 + 3));
  CHECK(table.read(strategy.scope())(1, 0) == 1);
}

TEST_CASE("sums of 16-bit rows are rounded once") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  auto table = strategy.variable<dist::Float16>({4, 2}, 0.0f, "table");
  nn::SlicesOptimizer optimizer{strategy, table, nn::SGD{.learning_rate = 1.0f}};
  strategy.run([&](auto& replica) {
    // 2048 + 1 is 2048 in 16 bits, and 2048 + 1 + 1 is 2050.
    dist::IndexedSlices<dist::Float16> slices{1, table.shape()};
    slices.indices()[0] = 1;
    for (dist::Float16& value : slices.values().elements())
      value = dist::Float16(replica.local_index() == 0 ? -2048.0f : -1.0f);
    optimizer.apply_slices(replica, slices);
  });
  for (std::size_t local = 0; local < 3; ++local) CHECK(float{table.component(strategy.scope(), local)[3]} == 2050.0f);
}

TEST_CASE("a step with no more rows than before does not allocate") {
  const auto check = [](auto& strategy) {
    auto table = strategy.template variable<float>(dist::Shape{100, 64}, 1.0f, "table");
    nn::SlicesOptimizer optimizer{strategy, table, nn::Adam{}};
    dist::IndexedSlices<float> slices{50, table.shape()};
    for (std::size_t row = 0; row < slices.rows(); ++row)
      slices.indices()[row] = static_cast<std::int64_t>(row * 7 % 20);
    for (float& value : slices.values().elements()) value = 0.5f;
    const auto step = [&](auto& replica) { optimizer.apply_slices(replica, slices); };
    strategy.run(step);
    const std::size_t before = allocations;
    for (int i = 0; i < 3; ++i) strategy.run(step);
    CHECK(allocations == before);
  };
  dist::Default plain;
  check(plain);
  dist::Mirrored<dist::ThreadAllReduce> mirrored{3};
  check(mirrored);
  dist::CentralStorage<dist::Cpu> central{3};
  check(central);
}

TEST_CASE_TEMPLATE("slices may be views of the variable itself (spec P14)", S, dist::Mirrored<dist::ThreadAllReduce>,
                   dist::CentralStorage<dist::Cpu>) {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    CAPTURE(replicas);
    S strategy{replicas};
    constexpr std::size_t rows = 500;
    auto table = strategy.template variable<double, dist::OnWrite, dist::Sum>(
        dist::Shape{rows, 4},
        [](dist::TensorView<double> all) {
          for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<double>(i + 1);
        },
        "table");
    nn::SlicesOptimizer optimizer{strategy, table, nn::SGD{.learning_rate = 0.125f}};
    std::vector<std::int64_t> all_rows(rows);
    for (std::size_t row = 0; row < rows; ++row) all_rows[row] = static_cast<std::int64_t>(row);
    for (int step = 0; step < 3; ++step)
      strategy.run([&](auto& replica) {
        const dist::TensorView<const double> values{table.component(replica).data(), dist::Shape{rows, 4}};
        optimizer.apply_slices(replica, dist::IndexedSlicesView<double>{all_rows, values, dist::Shape{rows, 4}});
      });
    // Every replica gives the whole table: w -= w replicas / 8.
    const double kept = 1 - static_cast<double>(replicas) / 8;
    for (std::size_t copy = 0; copy < strategy.num_local_replicas(); ++copy) {
      const auto values = table.component(strategy.scope(), copy);
      double largest = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = static_cast<double>(i + 1) * kept * kept * kept;
        largest = std::max(largest, std::abs(values[i] - expected) / expected);
      }
      CHECK(largest < 1e-14);
    }
  }
}

TEST_CASE("the slots and the iterations are tracked") {
  using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
  const auto step = [](auto& strategy, auto& optimizer) {
    dist::IndexedSlices<float> slices{1, {4, 2}};
    slices.indices()[0] = 2;
    slices.values()[0] = 1;
    slices.values()[1] = 2;
    strategy.run([&](auto& replica) { optimizer.apply_slices(replica, slices); });
  };
  const auto table_of = [](auto& strategy) {
    return strategy.template variable<float, dist::OnWrite, dist::Sum>({4, 2}, 1.0f, "table");
  };
  Mirrored two{2};
  auto table = table_of(two);
  nn::SlicesOptimizer optimizer{two, table, nn::Adam{}};
  step(two, optimizer);
  const support::Saved saved{two, optimizer};
  CHECK(saved.keys() == std::vector<std::string>{"iterations", "momentum", "velocity"});
  const auto kept = table.whole(two.scope());
  Mirrored other{2};
  auto restored = table_of(other);
  nn::SlicesOptimizer continued{other, restored, nn::Adam{}};
  restored.restore(other.scope(), kept);
  saved.restore(other, continued);
  step(two, optimizer);
  step(other, continued);
  CHECK(restored.whole(other.scope()) == table.whole(two.scope()));
  CHECK(continued.iterations(other.scope()) == 2);
}
