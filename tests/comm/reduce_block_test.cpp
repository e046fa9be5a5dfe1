#include <dist/comm/reduce_block.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {

/// Operands of several members, as seen by a member without a thread.
struct Operands {
  std::vector<std::vector<double>>* values;

  [[nodiscard]] std::size_t rank() const { return 0; }
  [[nodiscard]] std::size_t size() const { return values->size(); }
  void barrier() const {}
  void cancel_operands() const noexcept {}
  void publish(const dist::CollectiveCall&, const dist::Operand&) const {}
  template <class T>
  [[nodiscard]] const T* peer(std::size_t rank) const {
    return peer_to_write<T>(rank);
  }
  template <class T>
  [[nodiscard]] T* peer_to_write(std::size_t rank) const {
    return reinterpret_cast<T*>((*values)[rank].data());
  }
};
static_assert(dist::SharesMemory<Operands>);

template <class Op>
std::vector<float> reduced(Op op, const std::vector<std::vector<float>>& values) {
  std::vector<float> result(values[0].size());
  dist::detail::reduce_block(op, values.size(), std::span<float>{result},
                             [&](std::size_t rank) { return values[rank].data(); });
  return result;
}

}  // namespace

TEST_CASE("the reduction of one member is its own values") {
  CHECK(reduced(dist::sum, {{1, 2, 3}}) == std::vector<float>{1, 2, 3});
  CHECK(reduced(dist::mean, {{1, 2, 3}}) == std::vector<float>{1, 2, 3});
  CHECK(reduced(dist::sum, {{}, {}}).empty());
}

TEST_CASE("a block is reduced element by element and finished once") {
  const std::vector<std::vector<float>> values{{1, -2}, {3, 5}, {8, 6}};
  CHECK(reduced(dist::sum, values) == std::vector<float>{12, 9});
  CHECK(reduced(dist::mean, values) == std::vector<float>{4, 3});
  CHECK(reduced(dist::min, values) == std::vector<float>{1, -2});
  CHECK(reduced(dist::max, values) == std::vector<float>{8, 6});
  CHECK(reduced(dist::prod, values) == std::vector<float>{24, -60});
}

TEST_CASE("additions are in rank order") {
  // 2^24 + 1 is rounded to 2^24 in single precision, so only one order gives 0 here and 1 there.
  const float large = 16777216.0f;
  CHECK(reduced(dist::sum, {{large}, {1}, {-large}}) == std::vector<float>{0});
  CHECK(reduced(dist::sum, {{large}, {-large}, {1}}) == std::vector<float>{1});
}

TEST_CASE("a range is passed in whole blocks, in order, each element once") {
  constexpr std::size_t block = dist::detail::block_elements<double>;
  constexpr std::size_t count = 2 * block + 40;
  std::vector<std::vector<double>> values(3, std::vector<double>(count));
  for (std::size_t rank = 0; rank < 3; ++rank)
    for (std::size_t i = 0; i < count; ++i) values[rank][i] = static_cast<double>(rank * count + i);
  for (const dist::IndexRange range : {dist::IndexRange{0, count}, dist::IndexRange{3, block + 4},
                                       dist::IndexRange{5, 5}, dist::IndexRange{0, block}}) {
    std::size_t next = range.begin;
    std::size_t wrong = 0;
    dist::detail::reduce_range(dist::reduction_of<double, dist::Sum>, Operands{&values}, range,
                               [&](std::size_t first, std::span<const std::byte> bytes) {
                                 const auto sums = dist::detail::elements_in<double>(bytes);
                                 CHECK(first == next);
                                 CHECK(sums.size() <= block);
                                 for (std::size_t i = 0; i < sums.size(); ++i)
                                   wrong += sums[i] != static_cast<double>(3 * count + 3 * (first + i));
                                 next = first + sums.size();
                               });
    CHECK(next == range.end);
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("16-bit floating-point values are combined in rank order as floats and rounded once", T,
                   dist::Float16, dist::BFloat16) {
  const auto check = [](auto op, const std::vector<float>& values, float expected) {
    // More than one block.
    std::vector<T> result(2500);
    std::vector<std::vector<T>> operands;
    for (const float value : values) operands.emplace_back(result.size(), T(value));
    std::vector<const std::byte*> bytes;
    for (const std::vector<T>& operand : operands) bytes.push_back(std::as_bytes(std::span{operand}).data());
    const dist::Reduction& reduction = dist::reduction_of<T, std::remove_const_t<decltype(op)>>;
    reduction.reduce({bytes.data(), bytes.size(), bytes.size()}, {0, result.size()},
                     std::as_writable_bytes(std::span{result}).data(), reduction.finished_for(values.size()));
    std::size_t wrong = 0;
    for (const T value : result) wrong += !(value == expected);
    CHECK(wrong == 0);
  };
  // The unit in the last place of 2048 is 2 for f16 and 16 for bf16: sums rounded one by one would stay at 2048.
  std::vector<float> values(65, 0.25F);
  values[0] = 2048;
  check(dist::sum, values, 2064);
  check(dist::mean, {1, 2, 6}, 3);
  check(dist::mean, {60000, 60000, -30000}, float{T(90000.0 / 3)});
  check(dist::prod, {300, 300, 0.001F}, float{T(90000 * float{T(0.001F)})});
  check(dist::min, {3, -2, 5}, -2);
  check(dist::max, {3, -2, 5}, 5);
  check(dist::sum, {7}, 7);
  // In single precision only one order gives 0 here and 1 there.
  const float large = 16384;
  check(dist::prod, {large, 0x1p-14F, 3}, 3);
  check(dist::sum, {large, 0x1p-11F, -large}, 0);
  check(dist::sum, {large, -large, 0x1p-11F}, 0x1p-11F);
}

TEST_CASE("bool values are combined logically") {
  const bool values[3][2] = {{true, false}, {true, true}, {true, false}};
  bool result[2];
  const auto reduce = [&](auto op) {
    dist::detail::reduce_block(op, 3, std::span<bool>{result}, [&](std::size_t rank) { return values[rank]; });
    return std::pair{result[0], result[1]};
  };
  CHECK(reduce(dist::bit_and) == std::pair{true, false});
  CHECK(reduce(dist::bit_or) == std::pair{true, true});
  CHECK(reduce(dist::bit_xor) == std::pair{true, true});
  CHECK(reduce(dist::min) == std::pair{true, false});
  CHECK(reduce(dist::max) == std::pair{true, true});
}
