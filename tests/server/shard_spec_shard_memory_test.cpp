#include <dist/server/shard_spec.hpp>

#include <cstddef>

#include <doctest/doctest.h>

TEST_CASE("the elements of a shard are accessible only as their type") {
  double elements[12] = {};
  dist::server::ShardMemory memory{dist::io::ElementType::f64, 12, 4, reinterpret_cast<std::byte*>(elements)};
  memory.weights_as<double>()[11] = 3.0;
  CHECK(elements[11] == 3.0);
  CHECK(memory.weights_as<double>().size() == 12);
  try {
    static_cast<void>(memory.weights_as<float>());
    FAIL("nothing was thrown");
  } catch (const dist::StoreError& error) {
    CHECK(error.problem() == dist::server::Problem::wrong_type);
  }
}
