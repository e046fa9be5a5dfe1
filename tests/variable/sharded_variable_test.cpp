#include <dist/variable/sharded_variable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>
#include <variable/tensorflow/slices.hpp>

using dist::IndexedSlices;
using dist::Range;
using dist::Shape;
using dist::ShardedVariable;
using dist::Tensor;
using Ids = std::vector<std::int64_t>;
using support::what_throws;
namespace fixture = tensorflow_slices;

namespace {

using Shared = dist::Mirrored<dist::ThreadAllReduce>;

template <class T>
Tensor<T> counted(const Shape& shape, T first = T{}) {
  Tensor<T> tensor{shape};
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<T>(first + static_cast<T>(i));
  return tensor;
}

/// Shards with these numbers of rows, whose elements are numbered consecutively.
template <class T = float, class Agg = dist::None, class Sync = dist::OnWrite, class S>
auto counting(S& strategy, const std::vector<std::size_t>& rows, const Shape& shape) {
  using V = decltype(strategy.template variable<T, Sync, Agg>(Shape{}));
  std::vector<V> shards;
  for (const std::size_t count : rows)
    shards.push_back(strategy.template variable<T, Sync, Agg>(shape.with_rows(count), T{}, "part"));
  ShardedVariable<V> variable{std::move(shards), "table"};
  variable.restore(strategy.scope(), counted<T>(variable.shape()));
  return variable;
}

}  // namespace

TEST_CASE("a sharded variable has the rows of its shards in order (spec K05, K10)") {
  dist::Default strategy;
  std::vector<decltype(strategy.variable<float>(Shape{}))> shards;
  shards.push_back(strategy.variable<float>({2, 2}, std::vector<float>{1, 2, 3, 4}, "a"));
  shards.push_back(strategy.variable<float>({1, 2}, std::vector<float>{5, 6}, "b"));
  ShardedVariable variable{std::move(shards), "table"};
  CHECK(variable.name() == "table");
  CHECK(variable.shape() == Shape{3, 2});
  CHECK(variable.size() == 6);
  CHECK(variable.shards().size() == 2);
  CHECK(variable.shards()[1].name() == "b");
  CHECK(variable.layout().rows_of(1) == dist::IndexRange{2, 3});
  CHECK(variable.read(strategy.scope()) == Tensor<float>{{3, 2}, {1, 2, 3, 4, 5, 6}});
}

TEST_CASE("shards that do not match are rejected by name (spec K05)") {
  dist::Default strategy;
  using V = decltype(strategy.variable<float>(Shape{}));
  const auto message = [&](const std::vector<Shape>& shapes) {
    std::vector<V> shards;
    for (const Shape& shape : shapes)
      shards.push_back(strategy.variable<float>(shape, 0.0F, dist::concat("w", shards.size())));
    return what_throws([&] { static_cast<void>(ShardedVariable<V>{std::move(shards), "table"}); });
  };
  CHECK(message({}) ==
        "Sharded variable 'table' has no shards (the list of variables is empty). Give one variable or more.");
  CHECK(message({{2, 3}, {4, 2}}) ==
        "Variables 'w0' and 'w1' cannot both be shards of 'table' (their shapes are [2, 3] and [4, 2]). Give variables "
        "of "
        "the same shape except for the first axis.");
  CHECK(message({{2}, {2, 1}}).starts_with("Variables 'w0' and 'w1' cannot both be shards"));
  CHECK(message({{}, {}}) ==
        "Variable 'w0' cannot be a shard of 'table' (it is a scalar). Give variables that have rows.");
}

TEST_CASE("a scalar may be the only shard, and has no rows (spec J05)") {
  dist::Default strategy;
  using V = decltype(strategy.variable<float>(Shape{}));
  std::vector<V> shards;
  shards.push_back(strategy.variable<float>(Shape{}, 3.0F));
  ShardedVariable<V> scalar{std::move(shards), "scalar"};
  const auto scope = strategy.scope();
  scalar.assign_add(scope, 4.0F);
  CHECK(scalar.shape() == Shape{});
  CHECK(scalar.read(scope)[0] == 7);
  CHECK_THROWS_WITH_AS((void)scalar.gather(scope, std::vector<std::int64_t>{0}),
                       doctest::Contains("Variable 'scalar' has no rows (it is a scalar)"), dist::ShapeMismatch);
}

TEST_CASE("assigned, added and subtracted values are split for the shards (spec K06)") {
  dist::Default strategy;
  auto variable = counting(strategy, {3, 2}, {0, 2});
  const auto scope = strategy.scope();
  const Tensor<float> values = counted<float>({5, 2}, 100);
  variable.assign(scope, values);
  CHECK(variable.read(scope) == values);
  variable.assign_add(scope, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(variable.read(scope)[9] == 119);
  variable.assign_sub(scope, values);
  CHECK(variable.read(scope) == counted<float>({5, 2}, 1));
  variable.assign(scope, 7);
  CHECK(variable.read(scope)[8] == 7);
  CHECK(what_throws<dist::ShapeMismatch>([&] {
          variable.assign(scope, Tensor<float>{{4, 2}});
        }).starts_with("A value does not fit variable 'table' (the value has shape [4, 2], the variable [5, 2])"));
}

TEST_CASE("shards follow the rules of their contexts (spec K06, K07)") {
  const auto check = [](auto& strategy) {
    auto variable = counting<float, dist::Sum>(strategy, {3, 2}, {0});
    strategy.run([&](auto& replica) {
      const auto id = static_cast<float>(replica.replica_id().index());
      variable.assign(replica, Tensor<float>{{5}, {id, 1, 2, 3, id}});  // summed over the replicas
      variable.scatter_add(replica, IndexedSlices<float>{{4}, {{1}, {10}}, {5}});
    });
    CHECK(variable.read(strategy.scope()) == Tensor<float>{{5}, {3, 3, 6, 9, 33}});
  };
  Shared mirrored{3};
  check(mirrored);
  dist::CentralStorage<dist::Cpu> central{3};
  check(central);

  auto steps = counting<int, dist::OnlyFirstReplica>(mirrored, {1, 1}, {0});
  mirrored.run([&](auto& replica) {
    steps.assign_add(replica, dist::same(5));
    steps.assign_add(replica, dist::same(Tensor<int>{{2}, {1, 2}}));
    CHECK(steps.read(replica) == Tensor<int>{{2}, {6, 8}});
    CHECK(steps.gather(replica, Ids{1}) == Tensor<int>{{1}, {8}});
  });
}

TEST_CASE("indexed slices change the rows of all shards, in order (spec K07)") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  const Shape shape{7, 2};
  const IndexedSlices<float> slices{{6, 0, 3, 6}, {{4, 2}, {2, 3, 4, 5, 2, 2, 8, 9}}, shape};
  const auto check = [&](const auto& change) {
    auto divided = counting<float, dist::OnlyFirstReplica>(strategy, {3, 2, 2}, {0, 2});
    auto odd = counting<float, dist::OnlyFirstReplica>(strategy, {1, 5, 0, 1}, {0, 2});  // not by the rule "div"
    auto plain = strategy.variable<float, dist::OnWrite, dist::OnlyFirstReplica>(shape, counted<float>(shape));
    change(divided);
    change(odd);
    change(plain);
    CHECK(divided.read(scope) == Tensor<float>{plain.read(scope)});
    CHECK(odd.read(scope) == Tensor<float>{plain.read(scope)});
    CHECK(divided.read(scope) != counted<float>(shape));
  };
  check([&](auto& variable) { variable.scatter_add(scope, slices); });
  check([&](auto& variable) { variable.scatter_sub(scope, slices.view()); });
  check([&](auto& variable) { variable.scatter_mul(scope, slices); });
  check([&](auto& variable) { variable.scatter_div(scope, slices); });
  check([&](auto& variable) { variable.scatter_min(scope, slices); });
  check([&](auto& variable) { variable.scatter_max(scope, slices); });
  check([&](auto& variable) { variable.scatter_update(scope, slices); });

  auto batched = counting(strategy, {3, 2, 2}, {0, 2});
  batched.batch_scatter_update(scope, slices);
  CHECK(batched.gather(scope, Ids{6, 3, 0}) == Tensor<float>{{3, 2}, {8, 9, 2, 2, 4, 5}});
}

TEST_CASE("slices that do not fit are rejected with the name of the whole variable (spec K07)") {
  dist::Default strategy;
  auto variable = counting<int>(strategy, {2, 2}, {0});
  CHECK(what_throws<dist::ShapeMismatch>([&] {
          variable.scatter_add(strategy.scope(), IndexedSlices<int>{1, {5}});
        }).starts_with("Indexed slices do not fit variable 'table' (they have shape [5], the variable has shape [4])"));
  CHECK_THROWS_AS(variable.scatter_div(strategy.scope(), IndexedSlices<int>{1, {4}}), dist::InvalidArgument);
  CHECK(variable.read(strategy.scope()) == counted<int>({4}));
}

TEST_CASE("rows are gathered in the order of the ids (spec K08)") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  const auto variable = counting(strategy, {4, 3, 3}, {0, 2});
  CHECK(variable.gather(scope, Ids{9, 0, 4, 0}) == Tensor<float>{{4, 2}, {18, 19, 0, 1, 8, 9, 0, 1}});
  CHECK(variable.gather(scope, Tensor<std::int32_t>{{2, 1}, {3, 7}}) == Tensor<float>{{2, 1, 2}, {6, 7, 14, 15}});
  CHECK(variable.gather(scope, Tensor<std::uint8_t>{{}, {5}}) == Tensor<float>{{2}, {10, 11}});
  CHECK(variable.gather(scope, Ids{}) == Tensor<float>{Shape{0, 2}});
  CHECK(variable.sparse_read(scope, Ids{7, 2}) == Tensor<float>{{2, 2}, {14, 15, 4, 5}});
  CHECK(what_throws<dist::ShapeMismatch>([&] {
          static_cast<void>(variable.sparse_read(scope, Tensor<int>{{1, 2}, {7, 2}}));
        }) ==
        "Rows of variable 'table' must be read with a list of indices (the indices have shape [1, 2]). Give indices "
        "with one axis, or read with gather.");
  CHECK(what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(variable.gather(scope, Ids{10}));
        }).starts_with("Variable 'table' has no row 10"));
}

TEST_CASE("elements and parts of rows are gathered (spec K08)") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  const auto variable = counting(strategy, {2, 2}, {0, 3, 2});
  const auto gathered = [&](const Tensor<std::int64_t>& indices) { return variable.gather_nd(scope, indices); };
  CHECK(gathered({{2, 3}, {3, 1, 1, 0, 2, 0}}) == Tensor<float>{{2}, {21, 4}});
  CHECK(gathered({{1, 2, 2}, {3, 1, 0, 2}}) == Tensor<float>{{1, 2, 2}, {20, 21, 4, 5}});
  CHECK(gathered({{1}, {2}}) == Tensor<float>{{3, 2}, {12, 13, 14, 15, 16, 17}});
  CHECK(gathered(Tensor<std::int64_t>{Shape{0, 2}}) == Tensor<float>{Shape{0, 2}});
  CHECK(what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(gathered({{2}, {0, 3}}));
        }) == "Variable 'table' has no index 3 on axis 1 (its shape is [4, 3, 2]). Use indices within this shape.");
  CHECK_THROWS_AS(static_cast<void>(gathered({{1, 4}, {0, 0, 0, 0}})), dist::ShapeMismatch);
  CHECK_THROWS_AS(static_cast<void>(gathered(Tensor<std::int64_t>{Shape{1, 0}})), dist::ShapeMismatch);
  CHECK_THROWS_AS(static_cast<void>(gathered({{}, {1}})), dist::ShapeMismatch);
}

TEST_CASE("slices select the same elements as NumPy (spec K09)") {
  dist::Default strategy;
  const auto scope = strategy.scope();
  const auto variable = counting<int>(strategy, {3, 2, 2}, {0, 3, 2});
  const auto check = [&](const fixture::Sliced& expected, const auto&... parts) {
    CHECK(variable.slice(scope, parts...) == Tensor<int>{expected.shape, expected.elements});
  };
  check(fixture::row, -2);
  check(fixture::element, 6, 1, -1);
  check(fixture::rows, Range{1, 6, 2});
  check(fixture::backwards, Range{.step = -3});
  check(fixture::columns, dist::ellipsis, 1);
  check(fixture::middle, Range{}, 2);
  check(fixture::new_axes, dist::new_axis, Range{2, 4}, dist::ellipsis, dist::new_axis, Range{.step = -1});
  check(fixture::none, Range{5, 2});
  check(fixture::past_the_end, Range{-100, 100}, Range{1, 100});

  const bool rows[] = {true, false, false, true, false, true, false};
  CHECK(variable.masked(scope, {rows, Shape{7}}) == Tensor<int>{fixture::masked.shape, fixture::masked.elements});
  Tensor<bool> pairs{{7, 3}};
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = i % 2 == 0;
  CHECK(variable.masked(scope, pairs) == Tensor<int>{fixture::masked_pairs.shape, fixture::masked_pairs.elements});
  CHECK(what_throws<dist::ShapeMismatch>([&] {
          static_cast<void>(variable.masked(scope, {rows, Shape{6}}));
        }).starts_with("A mask does not fit variable 'table'"));
  CHECK(what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(variable.slice(scope, 7));
        }).starts_with("Slice index 7 of axis 0 of variable 'table' is out of range"));
  CHECK_THROWS_AS(static_cast<void>(variable.slice(scope, Range{.step = 0})), dist::InvalidArgument);
}

TEST_CASE("per-replica partial sums are read and saved as a whole (spec K10, N03)") {
  Shared strategy{3};
  auto variable = counting<float, dist::Sum, dist::OnRead>(strategy, {1, 2}, {0});
  strategy.run([&](auto& replica) { variable.assign_add(replica, 1); });
  const Tensor<float> sums{{3}, {3, 4, 5}};
  CHECK(variable.read(strategy.scope()) == sums);
  CHECK(variable.whole(strategy.scope()) == sums);
  CHECK(variable.gather(strategy.scope(), Ids{2}) == Tensor<float>{{1}, {5}});
}

TEST_CASE("reads may be cached") {
  dist::CentralStorage<dist::Cpu> strategy{2};
  auto variable = counting(strategy, {1, 1}, {0});
  const dist::CachedReads cached{strategy.scope()};
  CHECK(variable.read(cached) == Tensor<float>{{2}, {0, 1}});
  variable.assign(strategy.scope(), 9);
  CHECK(variable.read(cached) == Tensor<float>{{2}, {0, 1}});
}

// Remote shards.

namespace {

struct Elsewhere {
  std::vector<std::string> log;
  int in_flight = 0;
  std::string fails;  // the operation that fails on every shard
};

/// A variable with one copy, which only changes during the wait for an operation.
class FarVariable {
 public:
  using Element = float;

  struct Operation {
    Elsewhere* there;
    std::string name;
    std::shared_ptr<bool> is_waited_for = std::make_shared<bool>(false);
    std::shared_ptr<Tensor<float>> result = std::make_shared<Tensor<float>>();
    std::shared_ptr<std::vector<float>> elements;
    void (*act)(const Operation&, std::span<float>) = nullptr;
    dist::TensorView<const float> given = {};
    std::span<const std::int64_t> rows = {};

    void wait() {
      if (!std::exchange(*is_waited_for, true)) {
        there->log.push_back("wait " + name);
        --there->in_flight;
        act(*this, *elements);
      }
      if (name.starts_with(there->fails) && !there->fails.empty()) throw std::runtime_error(name + " failed");
    }
    [[nodiscard]] bool is_done() const noexcept { return *is_waited_for; }
    [[nodiscard]] dist::TensorView<const float> values() const { return *result; }
  };

  FarVariable(Elsewhere& there, std::string name, const Tensor<float>& values)
      : there_(&there),
        name_(std::move(name)),
        shape_(values.shape()),
        elements_(std::make_shared<std::vector<float>>(values.elements().begin(), values.elements().end())) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }

  [[nodiscard]] Operation start_read(const auto&) const {
    Operation read = begin("read");
    read.result->resize(shape_);
    read.act = [](const Operation& operation, std::span<float> elements) {
      std::copy(elements.begin(), elements.end(), operation.result->data());
    };
    return read;
  }
  [[nodiscard]] Operation start_gather(const auto&, std::span<const std::int64_t> rows) const {
    Operation gather = begin("gather");
    gather.rows = rows;
    gather.result->resize(shape_.with_rows(rows.size()));
    gather.act = [](const Operation& operation, std::span<float> elements) {
      const std::size_t width = operation.result->view().row_size();
      for (std::size_t i = 0; i < operation.rows.size(); ++i)
        std::copy_n(elements.data() + static_cast<std::size_t>(operation.rows[i]) * width, width,
                    operation.result->data() + i * width);
    };
    return gather;
  }
  template <class Update>
  [[nodiscard]] Operation start_write(const auto&, dist::TensorView<const float> values, Update) {
    Operation write = begin("write");
    write.given = values;
    write.act = [](const Operation& operation, std::span<float> elements) {
      for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = Update{}(elements[i], operation.given[i]);
    };
    return write;
  }
  template <class Update>
  [[nodiscard]] Operation start_write(const auto& context, float value, Update update) {
    *number_ = Tensor<float>{shape_};
    std::fill_n(number_->data(), number_->size(), value);
    return start_write(context, *number_, update);
  }
  template <class Update>
  [[nodiscard]] Operation start_scatter(const auto&, const dist::IndexedSlicesView<float>& slices, Update) {
    Operation scatter = begin("scatter");
    scatter.given = slices.values();
    scatter.rows = slices.indices();
    scatter.act = [](const Operation& operation, std::span<float> elements) {
      const std::size_t width = operation.given.row_size();
      for (std::size_t i = 0; i < operation.given.size(); ++i) {
        float& element = elements[static_cast<std::size_t>(operation.rows[i / width]) * width + i % width];
        element = Update{}(element, operation.given[i]);
      }
    };
    return scatter;
  }

 private:
  [[nodiscard]] Operation begin(const std::string& what) const {
    if (there_->fails == "begin " + name_) throw std::runtime_error(there_->fails + " failed");
    there_->log.push_back(what + " " + name_);
    ++there_->in_flight;
    return {.there = there_, .name = what + " " + name_, .elements = elements_};
  }

  Elsewhere* there_;
  std::string name_;
  Shape shape_;
  std::shared_ptr<std::vector<float>> elements_;
  std::shared_ptr<Tensor<float>> number_ = std::make_shared<Tensor<float>>();
};

ShardedVariable<FarVariable> far_table(Elsewhere& there) {
  std::vector<FarVariable> shards;
  shards.emplace_back(there, "a", Tensor<float>{{2, 1}, {0, 1}});
  shards.emplace_back(there, "b", Tensor<float>{{1, 1}, {2}});
  return ShardedVariable{std::move(shards), "table"};
}

using Log = std::vector<std::string>;

}  // namespace

TEST_CASE("an operation starts once per shard, on all shards before the first wait") {
  Elsewhere there;
  auto variable = far_table(there);
  dist::Default strategy;
  const auto scope = strategy.scope();
  static_assert(dist::StartsOperations<FarVariable, decltype(strategy.scope())>);

  CHECK(variable.read(scope) == Tensor<float>{{3, 1}, {0, 1, 2}});
  CHECK(std::exchange(there.log, {}) == Log{"read a", "read b", "wait read a", "wait read b"});
  CHECK(variable.gather(scope, Ids{2, 0, 2}) == Tensor<float>{{3, 1}, {2, 0, 2}});
  CHECK(std::exchange(there.log, {}) == Log{"gather a", "gather b", "wait gather a", "wait gather b"});
  variable.assign_add(scope, Tensor<float>{{3, 1}, {10, 20, 30}});
  CHECK(std::exchange(there.log, {}) == Log{"write a", "write b", "wait write a", "wait write b"});
  variable.scatter_sub(scope, IndexedSlices<float>{{2, 0, 2}, {{3, 1}, {1, 2, 3}}, {3, 1}});
  CHECK(std::exchange(there.log, {}) == Log{"scatter a", "scatter b", "wait scatter a", "wait scatter b"});
  CHECK(variable.whole(scope) == Tensor<float>{{3, 1}, {8, 21, 28}});
  variable.restore(scope, Tensor<float>{{3, 1}, {5, 6, 7}});
  CHECK(variable.slice(scope, Range{.step = -1}, 0) == Tensor<float>{{3}, {7, 6, 5}});
  variable.assign_sub(scope, 5);
  CHECK(variable.read(scope) == Tensor<float>{{3, 1}, {0, 1, 2}});
}

TEST_CASE("reads of rows overlap with other work") {
  Elsewhere there;
  const auto variable = far_table(there);
  dist::Default strategy;
  auto rows = variable.start_gather(strategy.scope(), Ids{2, 1});
  static_assert(dist::Future<decltype(rows)>);
  CHECK(there.log == Log{"gather a", "gather b"});
  CHECK(!rows.is_done());
  rows.wait();
  CHECK(rows.is_done());
  CHECK(Tensor<float>{rows.values()} == Tensor<float>{{2, 1}, {2, 1}});
  rows.wait();
  CHECK(there.log.size() == 4);
}

TEST_CASE("pending operations complete before an error is thrown and before their arguments are destroyed") {
  Elsewhere there;
  auto variable = far_table(there);
  dist::Default strategy;
  const auto scope = strategy.scope();
  there.fails = "read";
  CHECK_THROWS_WITH_AS(static_cast<void>(variable.read(scope)), "read a failed", std::runtime_error);
  CHECK(there.in_flight == 0);
  there.fails = "begin b";
  CHECK_THROWS_WITH_AS(variable.assign(scope, Tensor<float>{{3, 1}}), "begin b failed", std::runtime_error);
  CHECK(there.in_flight == 0);
  there.fails = "";
  static_cast<void>(variable.start_gather(scope, Ids{2, 1}));
  CHECK(there.in_flight == 0);
}
