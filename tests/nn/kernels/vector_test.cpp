#define DIST_DISPATCH_VECTORS 1  // all widths of the processor
#include <dist/nn/kernels/vector.hpp>

#include <cstddef>

#include <doctest/doctest.h>

#include "nn/kernels/widths.hpp"

using namespace dist;

namespace {

template <class T>
struct Transpose {
  const T* from;
  T* to;
  std::size_t* lanes_used;

  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void operator()() const {
    constexpr std::size_t lanes = Bytes / sizeof(T);
    *lanes_used = lanes;
    nn::kernels::Vector<T, Bytes> rows[lanes];
    nn::kernels::unrolled<lanes>([&]<std::size_t Row>()
                                     DIST_INLINE_LAMBDA { nn::kernels::load<Bytes>(rows[Row], from + Row * lanes); });
    nn::kernels::transpose<T, Bytes>(rows);
    nn::kernels::unrolled<lanes>([&]<std::size_t Row>()
                                     DIST_INLINE_LAMBDA { nn::kernels::store<Bytes>(rows[Row], to + Row * lanes); });
  }
};

template <class T>
void check_transpose() {
  T from[256 + 1];
  for (std::size_t at = 0; at < 257; ++at) from[at] = static_cast<T>(at);
  for_each_width([&](auto at_width) {
    T to[257] = {};
    std::size_t lanes = 0;
    at_width(Transpose<T>{from + 1, to + 1, &lanes});  // at unaligned addresses
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < lanes; ++row)
      for (std::size_t column = 0; column < lanes; ++column)
        if (to[1 + row * lanes + column] != from[1 + column * lanes + row]) ++wrong;
    CHECK(lanes > 1);
    CHECK(wrong == 0);
  });
}

}  // namespace

TEST_CASE("transpose transposes square matrices of vectors") {
  check_transpose<float>();
  check_transpose<double>();
}

TEST_CASE("vector_bytes_within returns the widest vector within a number of elements") {
  static_assert(nn::kernels::vector_bytes_within<float, 64>(16) == 64);
  static_assert(nn::kernels::vector_bytes_within<float, 64>(15) == 32);
  static_assert(nn::kernels::vector_bytes_within<float, 64>(10) == 32);
  static_assert(nn::kernels::vector_bytes_within<float, 16>(10) == 16);
  static_assert(nn::kernels::vector_bytes_within<float, 64>(1) == 4);
  static_assert(nn::kernels::vector_bytes_within<double, 32>(3) == 16);
}

TEST_CASE("with_first_within selects the first size within a count") {
  const auto size_for = [](std::size_t count) {
    std::size_t seen = 0;
    const std::size_t taken = nn::kernels::with_first_within<8, 4, 1>(count, [&]<std::size_t Size>() { seen = Size; });
    CHECK(taken == seen);
    return taken;
  };
  CHECK(size_for(0) == 0);
  CHECK(size_for(1) == 1);
  CHECK(size_for(3) == 1);
  CHECK(size_for(4) == 4);
  CHECK(size_for(7) == 4);
  CHECK(size_for(20) == 8);
}
