#include <dist/comm/reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using dist::Reduction;
using dist::reduction_of;

static_assert(reduction_of<float, dist::Sum>.partial == &reduction_of<float, dist::Sum>);
static_assert(reduction_of<dist::BFloat16, dist::Sum>.partial == &reduction_of<float, dist::Sum>);
static_assert(reduction_of<double, dist::Mean>.partial->partial == reduction_of<double, dist::Mean>.partial);
static_assert(reduction_of<double, dist::Mean>.finishes && !reduction_of<double, dist::Mean>.partial->finishes);

namespace {

template <class T>
std::byte* bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span{values}).data();
}

/// Members' values of both signs, more than a block.
template <class T>
std::vector<std::vector<T>> values_of(std::size_t members, std::size_t count) {
  std::vector<std::vector<T>> values(members, std::vector<T>(count));
  for (std::size_t member = 0; member < members; ++member)
    for (std::size_t i = 0; i < count; ++i)
      values[member][i] = static_cast<T>(static_cast<float>((member * 31 + i * 7) % 23) / 4.0f - 2.0f);
  return values;
}

/// The expected result: groups combined member by member, then with each other, and rounded last.
template <class Op, class T>
T expected(const std::vector<std::vector<T>>& values, std::size_t group, std::size_t i, bool finished) {
  using Wide = dist::Accumulator<T>;
  Wide all{};
  for (std::size_t begin = 0; begin < values.size(); begin += group) {
    Wide of_group{values[begin][i]};
    for (std::size_t member = begin + 1; member < begin + group; ++member)
      of_group = Op{}(of_group, static_cast<Wide>(values[member][i]));
    all = begin == 0 ? of_group : Op{}(all, of_group);
  }
  return static_cast<T>(finished ? Op::finish(all, values.size()) : all);
}

template <class T, class Op>
void check_orders() {
  const Reduction& reduction = reduction_of<T, Op>;
  constexpr std::size_t count = dist::detail::block_elements<T> + 77;
  const dist::IndexRange range{5, count - 3};
  constexpr std::pair<std::size_t, std::size_t> sizes[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {4, 2},
                                                           {5, 5}, {6, 3}, {6, 2}, {4, 1}};
  for (const auto& size : sizes) {
    const std::size_t members = size.first;
    const std::size_t group = size.second;
    CAPTURE(members);
    CAPTURE(group);
    const std::vector<std::vector<T>> given = values_of<T>(members, count);
    std::vector<std::vector<T>> values = given;
    std::vector<std::byte*> operands;
    for (std::vector<T>& each : values) operands.push_back(bytes_of(each));
    std::vector<T> result(range.size());
    for (const bool finished : {true, false}) {
      reduction.reduce({operands.data(), members, group}, range, bytes_of(result),
                       finished ? reduction.finished_for(members) : 0);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < result.size(); ++i)
        wrong += !(result[i] == expected<Op>(given, group, range.begin + i, finished));
      CHECK(wrong == 0);
    }
    reduction.reduce_in_place({operands.data(), members, group}, range, reduction.finished_for(members));
    std::size_t wrong = 0;
    for (std::size_t member = 0; member < members; ++member)
      for (std::size_t i = 0; i < count; ++i)
        wrong += !(values[member][i] ==
                   (i < range.begin || i >= range.end ? given[member][i] : expected<Op>(given, group, i, true)));
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("members are combined in order, group by group", T, float, double, std::int32_t, dist::BFloat16) {
  check_orders<T, dist::Sum>();
  check_orders<T, dist::Min>();
  if constexpr (dist::Floating<T>) check_orders<T, dist::Mean>();
}

TEST_CASE("values are widened, combined and finished in parts") {
  const Reduction& reduction = reduction_of<dist::Float16, dist::Mean>;
  CHECK(reduction.widens());
  std::vector<dist::Float16> values(3, dist::Float16{3.0f});
  std::vector<float> wide(3);
  reduction.widen(bytes_of(wide), bytes_of(values), 3);
  CHECK(wide == std::vector<float>(3, 3.0f));
  reduction.combine(bytes_of(wide), bytes_of(values), 2);
  CHECK(wide == std::vector<float>{6, 6, 3});
  std::vector<dist::Float16> result(3);
  reduction.finish(bytes_of(result), bytes_of(wide), nullptr, 3, 3);
  CHECK(float{result[0]} == 2);
  CHECK(float{result[2]} == 1);
  reduction.finish(bytes_of(result), bytes_of(wide), bytes_of(values), 3, 3);
  CHECK(float{result[0]} == 3);
  CHECK(float{result[2]} == 2);
  reduction.finish(bytes_of(result), bytes_of(wide), nullptr, 3, 0);
  CHECK(float{result[0]} == 6);
}

TEST_CASE("a call with precomputed names has the same fingerprint") {
  const dist::CollectiveCall by_name{
      .operation = "all_reduce", .reduction = "max", .elements = 12, .dtype = dist::dtype_name<std::int64_t>};
  const dist::CollectiveCall by_record = reduction_of<std::int64_t, dist::Max>.call("all_reduce", 12);
  CHECK(by_record == by_name);
  CHECK(by_record.fingerprint() == by_name.fingerprint());
  CHECK(dist::describe(by_record) == dist::describe(by_name));
}
