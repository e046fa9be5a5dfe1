#include <dist/variable/embedding.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/make_sharded_variable.hpp>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>
#include <variable/tensorflow/lookups.hpp>

using dist::IdLists;
using dist::Shape;
using dist::Tensor;
using Ids = std::vector<std::int64_t>;
using Splits = std::vector<std::size_t>;
using support::what_throws;
namespace fixture = tensorflow_lookups;

namespace {

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

Tensor<double> sines() {
  Tensor<double> table{{10, 2}};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::sin(static_cast<double>(i) + 1);
  return table;
}

const std::pair<dist::Combiner, std::string> combiners[] = {
    {dist::mean, "mean"}, {dist::sum, "sum"}, {dist::sqrtn, "sqrtn"}};

double largest_difference(std::span<const double> ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) most = std::max(most, std::abs(ours[i] - theirs[i]));
  return most;
}

/// Compares with TensorFlow's lookup of that name, and with its gradient of the table.
void compare(const std::string& name, const dist::EmbeddingLookup<double>& lookup) {
  CAPTURE(name);
  const fixture::Lookup* found = nullptr;
  for (const fixture::Lookup& each : fixture::lookups)
    if (name == each.name) found = &each;
  REQUIRE(found != nullptr);
  CHECK(largest_difference(lookup.values().elements(), found->values) < 1e-9);
  Tensor<double> upstream{lookup.values().shape()};
  for (std::size_t i = 0; i < upstream.size(); ++i) upstream[i] = std::cos(0.3 * static_cast<double>(i));
  const dist::IndexedSlices<double> slices = lookup.gradient(upstream);
  std::vector<double> dense(20);
  for (std::size_t row = 0; row < slices.rows(); ++row)
    for (std::size_t k = 0; k < 2; ++k)
      dense[static_cast<std::size_t>(slices.indices()[row]) * 2 + k] += slices.values()[row * 2 + k];
  CHECK(largest_difference(dense, found->gradient) < 1e-9);
}

/// Compares all of TensorFlow's lookups. Returns their number.
template <class Context, class Table>
std::size_t compare_all(const Context& context, const Table& table) {
  std::size_t compared = 0;
  const IdLists lists{fixture::ids, fixture::splits};
  const IdLists safe{fixture::safe_ids, fixture::safe_splits};
  for (const std::optional<double> norm : {std::optional<double>{}, std::optional<double>{0.75}}) {
    const std::string behind = norm ? " norm 0.75" : " norm 0";
    const dist::TensorView<const std::int64_t> dense_ids{fixture::dense_ids.data(), {2, 3}};
    const auto dense = dist::embedding_lookup(context, table, dense_ids, {.max_norm = norm});
    CHECK(dense.values().shape() == Shape{2, 3, 2});
    compare("dense" + behind, dense);
    ++compared;
    for (const auto& [combiner, name] : combiners) {
      const dist::SparseEmbeddingOptions options{.combiner = combiner, .max_norm = norm};
      const std::string plain = name + " plain" + behind, weighted = name + " weighted" + behind;
      compare("sparse " + plain, dist::embedding_lookup_sparse(context, table, lists, options));
      compare("sparse " + weighted, dist::embedding_lookup_sparse(context, table, lists, fixture::weights, options));
      for (const int id : {-1, 2}) {
        dist::SafeEmbeddingOptions safely{.combiner = combiner, .max_norm = norm};
        if (id >= 0) safely.default_id = id;
        const std::string with_default = " default " + std::to_string(id);
        compare("safe " + plain + with_default, dist::safe_embedding_lookup_sparse(context, table, safe, safely));
        compare("safe " + weighted + with_default,
                dist::safe_embedding_lookup_sparse(context, table, safe, fixture::safe_weights, safely));
      }
      compared += 6;
    }
  }
  return compared;
}

/// A remote table that counts the requested rows.
class FarTable {
 public:
  using Element = double;

  struct Done {
    std::shared_ptr<Tensor<double>> result = std::make_shared<Tensor<double>>();
    void wait() {}
    [[nodiscard]] bool is_done() const { return true; }
    [[nodiscard]] dist::TensorView<const double> values() const { return *result; }
  };

  explicit FarTable(Tensor<double> rows) : rows_(std::move(rows)) {}
  [[nodiscard]] std::string name() const { return "far"; }
  [[nodiscard]] Shape shape() const { return rows_.shape(); }
  [[nodiscard]] Done start_read(const auto&) const { return {std::make_shared<Tensor<double>>(rows_)}; }
  [[nodiscard]] Done start_gather(const auto&, std::span<const std::int64_t> rows) const {
    asked_.insert(asked_.end(), rows.begin(), rows.end());
    Done done;
    done.result->resize({rows.size(), 2});
    for (std::size_t i = 0; i < done.result->size(); ++i)
      (*done.result)[i] = rows_[static_cast<std::size_t>(rows[i / 2]) * 2 + i % 2];
    return done;
  }
  Done start_write(const auto&, const auto&, auto) { return {}; }
  Done start_scatter(const auto&, const auto&, auto) { return {}; }

  [[nodiscard]] const Ids& asked() const { return asked_; }

 private:
  Tensor<double> rows_;
  mutable Ids asked_;
};

}  // namespace

TEST_CASE("lookups and their gradients equal TensorFlow's (spec K08)") {
  dist::Default strategy;
  const auto plain = strategy.variable<double>({10, 2}, sines(), "table");
  CHECK(compare_all(strategy.scope(), plain) == fixture::lookups.size());
}

TEST_CASE("lookups in shards have the same results (spec K08)") {
  Mirrored strategy{2};
  const auto table = dist::sharded_variable<double>(strategy, dist::FixedShards{3}, {10, 2}, sines(), "table");
  compare_all(strategy.scope(), table);
  strategy.run([&](auto& replica) {
    if (replica.replica_id().index() == 1) compare_all(replica, table);  // not a collective call
  });
}

TEST_CASE("a remote table reads each row once (spec K08)") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  const FarTable far{sines()};
  const auto lookup = dist::embedding_lookup(scope, far, Ids{7, 2, 7, 7, 0});
  CHECK(far.asked() == Ids{0, 2, 7});
  CHECK(lookup.values()[2 * 2 + 1] == std::sin(16.0));
  compare_all(scope, far);

  std::vector<FarTable> shards;
  shards.emplace_back(Tensor<double>{{2, 2}, {0, 1, 2, 3}});
  shards.emplace_back(Tensor<double>{{1, 2}, {4, 5}});
  const dist::ShardedVariable table{std::move(shards), "table"};
  const auto rows = dist::embedding_lookup(scope, table, Ids{2, 1, 2});
  CHECK(Tensor<double>{rows.values()} == Tensor<double>{{3, 2}, {4, 5, 2, 3, 4, 5}});
  CHECK(table.shards()[1].asked() == Ids{0});
}

TEST_CASE("a lookup overlaps with other work") {
  dist::Default strategy;
  const auto table = strategy.variable<double>({10, 2}, sines());
  auto next = dist::start_embedding_lookup(strategy.scope(), table, Tensor<int>{{1, 2}, {3, 4}});
  static_assert(dist::Future<decltype(next)>);
  next.wait();
  CHECK(next.is_done());
  const auto lookup = std::move(next).take();
  CHECK(lookup.values().shape() == Shape{1, 2, 2});
  CHECK(lookup.values()[0] == std::sin(7.0));
}

TEST_CASE("lookups of lists do not refer to their ids and weights (spec K08)") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  const auto table = strategy.variable<float>({4, 1}, std::vector<float>{1, 2, 3, 4});
  const auto start = [&] {
    const Ids ids{3, 0, 2};
    const Splits splits{0, 2, 3};
    return dist::start_embedding_lookup_sparse(scope, table, IdLists{ids, splits}, std::vector<float>{3, 1, 2});
  };
  const auto start_safely = [&] {
    const Ids ids{-1, 1, 1};
    const Splits splits{0, 1, 3};
    return dist::start_safe_embedding_lookup_sparse(scope, table, IdLists{ids, splits},
                                                    {.combiner = dist::sum, .default_id = 3});
  };
  auto lists = start();
  auto safe = start_safely();
  static_assert(dist::Future<decltype(lists)> && dist::Future<decltype(safe)>);
  CHECK(Tensor<float>{std::move(lists).take().values()} == Tensor<float>{{2, 1}, {3.25F, 3}});
  CHECK(Tensor<float>{std::move(safe).take().values()} == Tensor<float>{{2, 1}, {4, 4}});
}

TEST_CASE("a gradient updates the rows of the lookup") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  auto table = dist::sharded_variable<float>(strategy, dist::FixedShards{2}, {4, 1}, 1.0F);
  const auto lookup = dist::embedding_lookup(scope, table, Ids{3, 0, 3});
  table.scatter_sub(scope, lookup.gradient(Tensor<float>{{3, 1}, {0.5F, 2, 0.25F}}));
  CHECK(table.read(scope) == Tensor<float>{{4, 1}, {-1, 1, 1, 0.25F}});
  CHECK(what_throws<dist::ShapeMismatch>([&] {
          static_cast<void>(lookup.gradient(Tensor<float>{{2, 1}}));
        }) ==
        "A gradient does not fit the embeddings (it has shape [2, 1], the embeddings [3, 1]). Give the gradient of "
        "values().");
}

TEST_CASE("16-bit embeddings are combined in float") {
  dist::Default strategy;
  const auto table =
      strategy.variable<dist::Float16>({2, 1}, std::vector<dist::Float16>{dist::Float16(2048.0F), dist::Float16(1.0F)});
  const Ids ids{0, 1, 1};
  const Splits splits{0, 3};
  const auto lookup =
      dist::embedding_lookup_sparse(strategy.scope(), table, IdLists{ids, splits}, {.combiner = dist::sum});
  CHECK(static_cast<float>(lookup.values()[0]) == 2050.0F);
}

TEST_CASE("examples without ids, or whose weights cancel out, are zero") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  const auto table = strategy.variable<float>({2, 1}, 3.0F);
  const Ids ids{0, 1};
  const Splits splits{0, 0, 2};
  const auto empty = dist::embedding_lookup_sparse(scope, table, IdLists{ids, splits});
  CHECK(Tensor<float>{empty.values()} == Tensor<float>{{2, 1}, {0, 3}});
  const auto cancelled = dist::embedding_lookup_sparse(scope, table, IdLists{ids, splits}, std::vector<float>{1, -1});
  CHECK(cancelled.values()[1] == 0);
  const auto weighted = dist::embedding_lookup_sparse(scope, table, IdLists{ids, splits}, Tensor<float>{{2}, {1, 2}},
                                                      {.combiner = dist::sum});
  CHECK(weighted.values()[1] == 9);
  CHECK(cancelled.gradient(Tensor<float>{{2, 1}, {1, 1}}).values()[1] == 0);
}

TEST_CASE("errors name the mistake") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  const auto table = strategy.variable<float>({10, 2}, 0.0F, "table");
  CHECK(what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(dist::embedding_lookup(scope, table, Ids{-1}));
        }).starts_with("Variable 'table' has no row -1 (it has 10 rows, numbered from 0)"));
  for (const double norm : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK(what_throws<dist::InvalidArgument>([&] {
            static_cast<void>(dist::embedding_lookup(scope, table, Ids{1}, {.max_norm = norm}));
          }).starts_with("Embeddings cannot be scaled to a length of "));
  const auto scalar = strategy.variable<float>({}, 0.0F, "step");
  CHECK(what_throws<dist::ShapeMismatch>([&] { static_cast<void>(dist::embedding_lookup(scope, scalar, Ids{0})); }) ==
        "Embeddings cannot be read from variable 'step' (it is a scalar). Give a variable that has rows.");
  const Ids ids{0, 1, 2};
  const Splits splits{0, 3};
  CHECK(
      what_throws<dist::ShapeMismatch>([&] {
        static_cast<void>(dist::embedding_lookup_sparse(scope, table, IdLists{ids, splits}, std::vector<float>{1, 2}));
      }) == "Weights do not fit the ids (2 weights for 3 ids). Give one weight for each id, in the same order.");
  for (const Splits& wrong : {Splits{}, Splits{1, 3}, Splits{0, 2}, Splits{0, 3, 2, 3}})
    CHECK(what_throws<dist::ShapeMismatch>([&] {
            static_cast<void>(IdLists{ids, wrong});
          }).starts_with("Lists of ids do not fit together (3 ids are split at ["));
}
