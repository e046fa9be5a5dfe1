#include <dist/data/distribute_options.hpp>

#include <doctest/doctest.h>

using dist::data::AutoShardPolicy;
using dist::data::InputOptions;
using dist::data::PipelinePerReplica;
using dist::data::PipelinePerWorker;
using dist::data::Remainder;

TEST_CASE("input options have the specified defaults and policy numbers (spec I07, I16)") {
  constexpr InputOptions options;
  CHECK(options.auto_shard_policy == AutoShardPolicy::automatic);
  CHECK(options.fetch_ahead == 1);
  CHECK(options.last_step == Remainder::keep);
  CHECK(PipelinePerWorker{}.last_step == Remainder::keep);
  CHECK(PipelinePerReplica{}.fetch_ahead == 1);
  CHECK(static_cast<int>(AutoShardPolicy::off) == -1);
  CHECK(static_cast<int>(AutoShardPolicy::automatic) == 0);
  CHECK(static_cast<int>(AutoShardPolicy::file) == 1);
  CHECK(static_cast<int>(AutoShardPolicy::data) == 2);
  CHECK(static_cast<int>(AutoShardPolicy::hint) == 3);
}
