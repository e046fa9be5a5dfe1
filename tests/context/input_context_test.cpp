#include <dist/context/input_context.hpp>

#include <doctest/doctest.h>

using dist::InputContext;
using dist::InvalidArgument;

TEST_CASE("the context of the default strategy has one pipeline and one replica (spec A21, I19)") {
  const InputContext context;
  CHECK(context == InputContext{1, 0, 1});
  CHECK(context.get_per_replica_batch_size(7) == 7);
}

TEST_CASE("the batch size is divided by the number of replicas (spec I19)") {
  const InputContext context{2, 1, 8};
  CHECK(context.get_per_replica_batch_size(64) == 8);
  CHECK(context.num_input_pipelines() == 2);
  CHECK(context.input_pipeline_id() == 1);
  CHECK(context.num_replicas_in_sync() == 8);
  CHECK(to_string(context) == "input pipeline 1 of 2, 8 replicas in sync");
  CHECK(to_string(InputContext{}) == "input pipeline 0 of 1, 1 replica in sync");
}

TEST_CASE("a batch size that is not divisible by the number of replicas is refused (spec I19)") {
  CHECK_THROWS_WITH_AS(static_cast<void>(InputContext{1, 0, 4}.get_per_replica_batch_size(10)),
                       doctest::Contains("10 rows, 4 replicas"), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(InputContext{1, 0, 0}.get_per_replica_batch_size(10)), InvalidArgument);
}
