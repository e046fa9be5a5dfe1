// Tests that a policy between processes reuses its work memory: a typed test case for programs that run under mpirun,
//   TEST_CASE_TEMPLATE_INSTANTIATE(work_memory, TheFixture);
// Replaces the program's operator new.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>

#include <doctest/doctest.h>
#include <support/allocations.hpp>

TEST_CASE_TEMPLATE_DEFINE("with existing work memory, nothing is allocated", Fixture, work_memory) {
  const Fixture group{std::chrono::seconds{60}};
  const auto& ops = group.collectives();
  std::vector<float> values(200000, 1.0f);
  std::vector<float> mirror(values.size());
  std::vector<dist::BFloat16> halves(30000);
  const auto work = [&] {
    ops.all_reduce(dist::sum, std::span<float>{values});
    ops.all_reduce(dist::mean, std::span<float>{values}.first(3));
    ops.all_reduce(dist::sum, std::span<dist::BFloat16>{halves});
    ops.reduce_and_apply(dist::sum, std::span<const float>{values}, std::span<float>{mirror},
                         [](std::size_t, float weight, float) { return weight; });
    ops.broadcast(0, std::span<float>{mirror});
  };
  work();
  // On a busy machine, more messages than before may be in flight at once, and need memory.
  std::size_t fewest = allocations;
  for (int round = 0; round < 5; ++round) {
    const std::size_t before = allocations;
    work();
    fewest = std::min(fewest, allocations - before);
  }
  CHECK(fewest == 0);
}
