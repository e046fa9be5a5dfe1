#include <dist/comm/direct/reduce_directly.hpp>

#include <array>
#include <cstddef>
#include <vector>

#include <dist/comm/element_update.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>

#include <doctest/doctest.h>

namespace {

struct Step {
  template <class T>
  T operator()(std::size_t i, T weight, T gradient) const {
    return static_cast<T>(weight - gradient * static_cast<T>(i % 3));
  }
};

/// Returns the copies after all shares of `replicas` replicas have reduced values r + i into copies that contain i.
/// Operands start `skew` elements after a multiple of 16 bytes.
template <class T, class Op, std::size_t Most, bool Exact = false>
std::vector<std::vector<T>> reduced(std::size_t replicas, std::size_t count, std::size_t skew) {
  constexpr std::size_t lanes = dist::pack_elements<T>;
  std::vector<std::vector<dist::Pack<T>>> values(replicas), copies(replicas);
  std::vector<const T*> from;
  std::vector<T*> to;
  for (std::size_t r = 0; r < replicas; ++r) {
    values[r].resize(count / lanes + 2);
    copies[r].resize(count / lanes + 2);
    T* const value = values[r].front().element + skew;
    T* const copy = copies[r].front().element + skew;
    for (std::size_t i = 0; i < count; ++i) {
      value[i] = static_cast<T>(static_cast<float>(r + i));
      copy[i] = static_cast<T>(static_cast<float>(i));
    }
    from.push_back(value);
    to.push_back(copy);
  }
  for (std::size_t rank = 0; rank < replicas; ++rank) {
    const dist::IndexRange share = dist::shard_of(count, rank, replicas, lanes);
    const dist::detail::ReduceDirectly<T, Op, Step, Most, Exact> body{from, to, rank, share.end, Step{}};
    const dist::IndexRange packs = dist::detail::packs_of<T>(share);
    for (std::size_t pack = packs.begin; pack < packs.end; ++pack) body(pack);
  }
  std::vector<std::vector<T>> result;
  for (const T* const copy : to) result.emplace_back(copy, copy + count);
  return result;
}

}  // namespace

TEST_CASE_TEMPLATE("shares reduce, update and write every copy for whole and partial packs, aligned or not", T, float,
                   double, std::int32_t) {
  for (const std::size_t replicas : {1U, 2U, 3U, 4U})
    for (const std::size_t count : {0U, 1U, 3U, 8U, 37U})
      for (const std::size_t skew : {0U, 1U}) {
        CAPTURE(replicas);
        CAPTURE(count);
        CAPTURE(skew);
        std::vector<T> expected;
        for (std::size_t i = 0; i < count; ++i) {
          // The sum over r of r + i.
          const auto sum = static_cast<T>(replicas * i + replicas * (replicas - 1) / 2);
          expected.push_back(Step{}(i, static_cast<T>(i), sum));
        }
        for (const std::vector<T>& copy : reduced<T, dist::Sum, 4>(replicas, count, skew)) CHECK(copy == expected);
        if (replicas == 4)
          for (const std::vector<T>& copy : reduced<T, dist::Sum, 4, true>(replicas, count, skew))
            CHECK(copy == expected);
      }
}

TEST_CASE("16-bit values are combined as floats, and a mean is rounded once") {
  // bfloat16 cannot represent 257 (it rounds to 256): rounding the sum of 1 and 256 would change the mean.
  const std::array<dist::BFloat16, 1> first{dist::BFloat16{1.0F}}, second{dist::BFloat16{256.0F}};
  std::array<dist::BFloat16, 1> mirror{dist::BFloat16{0.0F}}, other = mirror;
  struct Take {
    dist::BFloat16 operator()(std::size_t, dist::BFloat16, dist::BFloat16 given) const { return given; }
  };
  const std::array<const dist::BFloat16*, 2> from{first.data(), second.data()};
  const std::array<dist::BFloat16*, 2> to{mirror.data(), other.data()};
  const dist::detail::ReduceDirectly<dist::BFloat16, dist::Mean, Take, 2> body{from, to, 0, 1, Take{}};
  body(0);
  CHECK(float{mirror[0]} == float{dist::BFloat16{128.5F}});
  CHECK(float{other[0]} == float{mirror[0]});
}
