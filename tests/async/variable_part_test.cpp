#include <dist/async/variable_part.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "async/served_job.hpp"

TEST_CASE("a part of a variable is read and written, and the other elements stay as they are") {
  dist_test::ServedJob<dist::Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  auto variable = job.strategy().variable<double>({6}, std::vector<double>{0, 1, 2, 3, 4, 5});
  const dist::VariablePart part{variable, 2, dist::Shape{3}};
  CHECK(part.shape() == dist::Shape{3});
  dist::Tensor<double> values = part.whole(job.scope());
  for (std::size_t i = 0; i < 3; ++i) CHECK(values[i] == static_cast<double>(i + 2));
  values[0] = 7;
  part.restore(job.scope(), values.view());
  const auto all = variable.read(job.scope());
  CHECK(std::vector<double>(all.elements().begin(), all.elements().end()) == std::vector<double>{0, 1, 7, 3, 4, 5});
}
