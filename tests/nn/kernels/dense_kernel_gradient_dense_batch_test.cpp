#include <dist/nn/kernels/dense_kernel_gradient.hpp>

#include <doctest/doctest.h>

TEST_CASE("a default DenseBatch has no rows") {
  constexpr dist::nn::kernels::DenseBatch<float> batch;
  static_assert(batch.rows == 0 && batch.x == nullptr && batch.dy == nullptr);
  const float x[2] = {1.0f, 2.0f};
  const float dy[1] = {3.0f};
  const dist::nn::kernels::DenseBatch<float> one{x, dy, 1};
  CHECK(one.x[1] == 2.0f);
  CHECK(one.dy[0] == 3.0f);
}
