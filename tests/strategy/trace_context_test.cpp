#include <dist/strategy/trace_context.hpp>

#include <doctest/doctest.h>

#include <conformance/variable_matrix.hpp>
#include <support/four_xla_cpus.hpp>
#include <support/what_throws.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/hlo/gradients.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/strategy/compiled_step.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/strategy/tpu.hpp>

namespace hlo = dist::hlo;
using dist::Shape;
using dist::Tensor;

namespace {

struct Location {
  std::size_t offset;
  Shape shape;
};
/// Elements 0 to 3 and the last one, of six.
const std::array<Location, 2> parts{Location{0, Shape{2, 2}}, Location{5, Shape{}}};

hlo::Value doubled(hlo::Value x) { return hlo::untyped::add(x, x); }

}  // namespace

TEST_CASE("a step changes parts of a variable, and not the elements between them") {
  dist::OneDevice<dist::Xla> strategy;
  auto numbers = strategy.variable<float>(Shape{6}, 0.0F);
  const auto scope = strategy.scope();
  numbers.assign(scope, Tensor<float>{{6}, {1, 2, 3, 4, 5, 6}});

  auto in_parts = strategy.compile([&](auto& replica) {
    const std::vector<hlo::Value> before = replica.read_parts(numbers, parts);
    replica.write_parts(numbers, parts, std::array{doubled(before[0]), before[1]});
    return std::tuple{
        replica.read_parts(numbers, parts)[0] == before[0] ? hlo::Traced<float>{1} : hlo::Traced<float>{0},
        numbers.read(replica)};
  });
  const auto [is_same, whole] = in_parts();
  CHECK(is_same == 0);
  CHECK(whole == Tensor<float>{{6}, {2, 4, 6, 8, 0, 6}});  // elements that the program does not have are 0
  CHECK(numbers.whole(scope) == Tensor<float>{{6}, {2, 4, 6, 8, 5, 6}});

  SUBCASE("a step that first uses the whole variable can also write parts") {
    auto whole_first = strategy.compile([&](auto& replica) {
      numbers.assign_add(replica, 1.0F);
      const std::vector<hlo::Value> before = replica.read_parts(numbers, parts);
      replica.write_parts(numbers, parts, std::array{doubled(before[0]), doubled(before[1])});
    });
    whole_first();
    CHECK(numbers.whole(scope) == Tensor<float>{{6}, {6, 10, 14, 18, 6, 14}});
  }
  SUBCASE("a step that first uses parts can also write the whole variable") {
    auto parts_first = strategy.compile([&](auto& replica) {
      static_cast<void>(replica.read_parts(numbers, parts));
      numbers.assign(replica, 7.0F);
    });
    parts_first();
    CHECK(numbers.whole(scope) == Tensor<float>{{6}, {7, 7, 7, 7, 5, 7}});
  }
}

using conformance::Write;
using Floats = Tensor<float>;
using Strategy = dist::Tpu<>;
template <std::size_t... Extents>
using Traced = hlo::Traced<float, Extents...>;

namespace {

/// Returns this replica's number, from 0.
template <class Replica>
Traced<> number_of(const Replica& replica) {
  return replica.replica_id().template as<float>();
}

/// A row of the table of spec G.2 in a compiled step: three variables, each with its own kind of write.
template <class Sync, class Agg>
class Row {
 public:
  explicit Row(Strategy& strategy)
      : strategy_(strategy),
        replicas_(strategy.num_replicas_in_sync()),
        variables_{make(strategy), make(strategy), make(strategy)} {
    before_.fill(std::vector<float>(replicas_, conformance::old_value));
  }

  /// Writes `written` values, reads, then adds 1. Returns the values read.
  template <class Replica>
  [[nodiscard]] auto step(const Replica& replica) {
    const Traced<> given = 4 * (number_of(replica) + 1);
    variables_[0].assign(replica, Traced<2, 3>{given});
    variables_[1].assign_add(replica, given);
    variables_[2].assign_sub(replica, hlo::Dynamic<float>{Traced<2, 3>{given}});
    const auto read = of_each([&](auto& variable) { return variable.read(replica).template as<2, 3>(); });
    const auto synchronized = of_each([&](auto& variable) {
      if constexpr (own && none)
        return variable.read(replica);
      else
        return variable.synchronized_read(replica);
    });
    for (auto& variable : variables_)
      if constexpr (is_summed)
        variable.assign_add(replica, 1);
      else
        variable.assign_add(replica, dist::same(1));
    return std::pair{read, synchronized};
  }

  /// Compares the results of `step`, and the current values of the variables.
  template <class Seen>
  void check(const Seen& seen) {
    std::vector<float> given;
    for (std::size_t r = 0; r < replicas_; ++r) given.push_back(conformance::written(r));
    for (const Write write : {Write::assign, Write::add, Write::subtract}) {
      const auto which = static_cast<std::size_t>(write);
      conformance::Comparison comparison{dist::concat(Sync::name, ", ", Agg::name, ", write ", which), {}};
      std::vector<float>& values = before_[which];
      for (std::size_t r = 0; r < replicas_; ++r)
        values[r] =
            conformance::after(write, values[r], own || none ? given[r] : conformance::combined(Agg::name, given));
      const float all_values = conformance::combined(Agg::name, values);
      for (std::size_t r = 0; r < replicas_; ++r) {
        comparison.expect("what is read", seen.first[which][r].elements(), values[r]);
        comparison.expect("what is read synchronized", seen.second[which][r].elements(),
                          own && !none ? all_values : values[r]);
        values[r] += is_summed ? static_cast<float>(replicas_) : 1;
        comparison.expect("the copy", variables_[which].component(strategy_.scope(), r), values[r]);
      }
      comparison.check();
    }
  }

 private:
  static constexpr bool own = std::is_same_v<Sync, dist::OnRead>;
  static constexpr bool none = std::is_same_v<Agg, dist::None>;
  static constexpr bool is_summed = !own && std::is_same_v<Agg, dist::Sum>;
  using Variable = dist::DistributedVariable<float, Sync, Agg, dist::Xla>;

  static Variable make(Strategy& strategy) {
    return strategy.template variable<float, Sync, Agg>({2, 3}, conformance::old_value);
  }
  template <class Of>
  [[nodiscard]] auto of_each(Of&& of) {
    return std::array{of(variables_[0]), of(variables_[1]), of(variables_[2])};
  }

  Strategy& strategy_;
  std::size_t replicas_;
  std::array<Variable, 3> variables_;
  std::array<std::vector<float>, 3> before_;  // by the kind of write, for each replica
};

template <class Sync>
using Rows =
    std::tuple<Row<Sync, dist::None>, Row<Sync, dist::Sum>, Row<Sync, dist::Mean>, Row<Sync, dist::OnlyFirstReplica>>;

template <class RowsOfTable>
auto step_of(RowsOfTable& rows, const auto& replica) {
  return std::apply([&](auto&... row) { return std::tuple{row.step(replica)...}; }, rows);
}
template <class RowsOfTable, class Seen>
void check(RowsOfTable& rows, const Seen& seen) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (std::get<I>(rows).check(std::get<I>(seen)), ...); }
  (std::make_index_sequence<4>{});
}

template <std::size_t Replicas>
void check_collectives() {
  CAPTURE(Replicas);
  Strategy strategy{Replicas};
  auto step = strategy.compile([](auto& replica) {
    const Traced<> id = number_of(replica);
    const Traced<4> x = hlo::iota<Traced<4>, 0>() + Traced<4>{10 * id};  // [10 id, 10 id + 1, ...]
    const auto y = hlo::Dynamic<float>{hlo::untyped::reshape(x.value(), {2, 2})};
    const auto [sum, smallest] = replica.all_reduce(dist::sum, std::pair{x, std::tuple{id}});
    const auto all = replica.template all_gather<Replicas>(x);
    const auto mine = replica.template reduce_scatter<Replicas>(dist::sum, x);

    // Numbers that depend on x of all replicas. Their gradients are gradients of the sum over all replicas.
    const auto weighted = [](auto weights, auto values) { return hlo::reduce(dist::sum, weights * values); };
    const auto places = hlo::iota<Traced<4 * Replicas>, 0>();
    const auto gradient = [&](Traced<> of) { return std::get<0>(hlo::gradients(of, std::tuple{x})); };
    return std::tuple{std::array{sum, replica.all_reduce(dist::mean, x), replica.all_reduce(dist::min, x),
                                 replica.all_reduce(dist::max, x), replica.broadcast(x, Replicas - 1)},
                      std::get<0>(smallest),
                      replica.all_reduce(dist::sum, 2),
                      all,
                      replica.all_gather(y, -1),
                      replica.all_gather(x, 0),
                      mine,
                      std::array{gradient(weighted(Traced<4>{id + 1}, sum)), gradient((id + 1) * weighted(places, all)),
                                 gradient((id + 1) * hlo::reduce(dist::sum, mine))}};
  });
  const auto [reduced, of_numbers, of_constant, all, along_last, along_first, mine, gradients] = step();

  const auto replicas = static_cast<float>(Replicas);
  const float ids = replicas * (replicas - 1) / 2;  // 0 + 1 + ...
  CHECK(strategy.reduce(dist::sum, of_numbers) == ids * replicas);
  CHECK(of_constant[0] == static_cast<int>(2 * Replicas));
  Floats together{{4 * Replicas}};
  Floats side_by_side{{2, 2 * Replicas}};
  for (std::size_t r = 0; r < Replicas; ++r)
    for (std::size_t i = 0; i < 4; ++i) {
      together[4 * r + i] = static_cast<float>(10 * r + i);
      side_by_side(i / 2, 2 * r + i % 2) = static_cast<float>(10 * r + i);
    }
  for (std::size_t r = 0; r < Replicas; ++r) {
    CAPTURE(r);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto index = static_cast<float>(i);
      CHECK(reduced[0][r][i] == replicas * index + 10 * ids);
      CHECK(reduced[1][r][i] == index + 10 * ids / replicas);
      CHECK(reduced[2][r][i] == index);
      CHECK(reduced[3][r][i] == index + 10 * (replicas - 1));
      CHECK(reduced[4][r][i] == index + 10 * (replicas - 1));
      const float weights = ids + replicas;  // 1 + 2 + ...
      CHECK(gradients[0][r][i] == weights);
      CHECK(gradients[1][r][i] == weights * static_cast<float>(4 * r + i));
      CHECK(gradients[2][r][i] == static_cast<float>(i * Replicas / 4 + 1));  // of the replica that has the element
    }
    CHECK(all[r] == together);
    CHECK(along_first[r] == together);
    CHECK(along_last[r] == side_by_side);
    for (std::size_t i = 0; i < 4 / Replicas; ++i)
      CHECK(mine[r][i] == replicas * static_cast<float>(4 / Replicas * r + i) + 10 * ids);
  }

  // Results of a step are reduced and gathered like results of `run` (spec C07, C14, C15).
  CHECK(strategy.gather(reduced[2], 0).shape() == Shape{4 * Replicas});
  CHECK(strategy.reduce(dist::mean, along_first) == together);
  CHECK(strategy.local_results(mine).size() == Replicas);
}

}  // namespace

TEST_CASE("reads and writes of variables in a compiled step follow the table (spec G.2, G40, G41, G42)") {
  for (const std::size_t replicas : {1U, 2U, 4U}) {
    CAPTURE(replicas);
    Strategy strategy{replicas};
    Rows<dist::OnWrite> on_write{strategy, strategy, strategy, strategy};
    Rows<dist::OnRead> on_read{strategy, strategy, strategy, strategy};
    auto step = strategy.compile([&](auto& replica) {
      return std::pair{step_of(on_write, replica), step_of(on_read, replica)};
    });
    for (int call = 0; call < 2; ++call) {
      const auto seen = step();
      check(on_write, seen.first);
      check(on_read, seen.second);
    }
    CHECK(step.programs() == 1);
  }
}

TEST_CASE("variables with one element, of integers and of bools, have values in a compiled step") {
  Strategy strategy{2};
  auto count = strategy.variable<std::int64_t, dist::OnRead, dist::Sum>({}, 5);
  auto is_done = strategy.variable<bool, dist::OnWrite, dist::OnlyFirstReplica>({1}, false);
  auto step = strategy.compile([&](auto& replica) {
    count.assign_add(replica, replica.replica_id().template as<std::int64_t>());
    is_done.assign(replica, replica.replica_id() == std::uint32_t{0});
    return std::tuple{count.value(replica), count.synchronized_value(replica), is_done.value(replica)};
  });
  const auto [own, all, done] = step();
  CHECK(own[0] == 5);
  CHECK(own[1] == 6);
  CHECK(all[0] == 11);
  CHECK(all[1] == 11);
  CHECK(done[1]);
  CHECK(count.value(strategy.scope()) == 11);
  CHECK(is_done.value(strategy.scope()));
}

TEST_CASE("a compiled step has collectives, and gradients through them (spec E03, E06, C07, C14, C15)") {
  check_collectives<1>();
  check_collectives<2>();
  check_collectives<4>();
}

TEST_CASE("unsupported operations are refused during tracing") {
  Strategy strategy{2};
  auto weights = strategy.variable<float>({2}, 1.0F, "weights");
  auto small = strategy.variable<std::int8_t>({}, 1, "small");
  int kind = 0;
  const auto refusal = [&](int of) {
    kind = of;
    auto step = strategy.compile([&](auto& replica) {
      const Traced<2> pair{1.0F};
      if (kind == 0) static_cast<void>(replica.all_gather(pair, 1));
      if (kind == 1) static_cast<void>(replica.all_gather(Traced<>{1.0F}, 0));
      if (kind == 2) static_cast<void>(replica.broadcast(pair, 2));
      if (kind == 3) static_cast<void>(weights.value(replica));
      if (kind == 4) weights.assign(replica, Traced<3>{1.0F});
      if (kind == 5) small.assign(replica, 200);
      if (kind == 6) static_cast<void>(replica.template all_gather<3>(pair));
    });
    return support::what_throws([&] { step(); });
  };
  CHECK(refusal(0).find("Axis 1 is out of range (the value has shape [2], of rank 1)") == 0);
  CHECK(refusal(1).find("A number has no axis to gather along") == 0);
  CHECK(refusal(2).find("The root of a broadcast is out of range (root 2 of 2 replicas)") == 0);
  CHECK(refusal(3).find("Variable 'weights' has no single value (its shape is [2])") == 0);
  CHECK(refusal(4).find("A traced array does not fit variable 'weights' (its shape is [3], the variable's [2])") == 0);
  CHECK(refusal(5).find("Variable 'small' cannot hold the value given (200 is outside the range of ") == 0);
  CHECK(refusal(6).find("hlo::all_gather does not fit this program (it is for 3 replicas, but the program is for 2)") ==
        0);
  CHECK(weights.read(strategy.scope())[0] == 1);
}

TEST_CASE("XLA's errors for a step contain the line that compiles it") {
  Strategy strategy{1};
  const int line = __LINE__ + 1;
  auto step = strategy.compile(
      [](auto&) { return Traced<2>{hlo::untyped::add(Traced<2>{1.0F}.value(), Traced<3>{1.0F}.value())}; });
  const std::string refusal = support::what_throws<dist::ProgramRefused>([&] { static_cast<void>(step()); });
  CHECK(refusal.find(dist::concat("step at ", __FILE__, ":", line)) != std::string::npos);
  CHECK(refusal.find("stablehlo.add") != std::string::npos);
}
