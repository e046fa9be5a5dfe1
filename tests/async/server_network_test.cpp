#include <dist/async/server_network.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/network.hpp>
#include <dist/strategy/default.hpp>

#include "async/served_job.hpp"
#include "async/small_network.hpp"
#include "support/temporary_folder.hpp"

namespace nn = dist::nn;
using dist::Local;
using dist_test::ServedJob;

namespace {

using Small = nn::ServerNetwork<small::Dense, nn::Reference, Local>;
using Kept = nn::Sequential<nn::Input<6>, nn::Dense<4>, nn::BatchNormalization<>, nn::Dense<2>>;

std::vector<float> values_of(const dist::Tensor<float>& tensor) {
  return {tensor.elements().begin(), tensor.elements().end()};
}

}  // namespace

TEST_CASE("parameters are variables on the servers in turn, and large ones are divided (spec J04, J06)") {
  // A kernel of 6 x 5 numbers has 120 bytes, all other parameters less than 64.
  ServedJob<Local> job(2, 1, {.partitioner = dist::MinSizeShards{.min_shard_bytes = 60, .max_shards = 8}});
  const Small net{job.strategy(), 3};
  std::vector<std::string> names;
  std::vector<std::vector<std::uint64_t>> servers;
  for (const auto& variable : net.parameters()) {
    names.push_back(variable.name());
    servers.emplace_back();
    for (const auto& shard : variable.shards()) servers.back().push_back(shard.place().server);
  }
  CHECK(names == std::vector<std::string>{"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"});
  CHECK(servers == std::vector<std::vector<std::uint64_t>>{{0, 1}, {0}, {1}, {0}});
}

TEST_CASE("the first parameters are those of nn::Network, and the coordinator reads and writes them") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  const auto scope = job.scope();
  Small net{job.strategy(), 3};
  dist::Default alone;
  const nn::Network<small::Dense> expected{alone, 3};
  for (const nn::Parameter& parameter : net.layout())
    CHECK(values_of(net.parameter(scope, parameter.name())) ==
          values_of(expected.parameter(alone.scope(), parameter.name())));
  net.assign_parameter(scope, "dense_1/bias", std::vector<float>{1, 2, 3});
  CHECK(values_of(net.parameter(scope, "dense_1/bias")) == std::vector<float>{1, 2, 3});
  CHECK_THROWS_AS((void)net.parameter(scope, "dense_2/bias"), dist::InvalidArgument);
  CHECK_THROWS_AS(net.assign_parameter(scope, "dense_1/bias", std::vector<float>{1}), dist::ShapeMismatch);
}

TEST_CASE("its shards go with it") {
  ServedJob<Local> job(1, 1);
  const auto shards = [&] {
    const auto kept = job.strategy().variable<float>({1});
    return kept.shards()[0].client(job.scope())->list().size();
  };
  {
    const Small net{job.strategy()};
    CHECK(shards() == 1 + 4);
  }
  CHECK(shards() == 1);
}

TEST_CASE("a checkpoint of it is one of nn::Network, with what layers keep, and the reverse (spec K11)") {
  const support::TemporaryFolder folder;
  dist::Default alone;
  nn::Network<Kept> plain{alone, 1};
  plain.assign_parameter(alone.scope(), "dense_1/bias", std::vector<float>{5, 6});
  plain.state().assign(alone.scope(), 0.5F);
  dist::Checkpoint{alone}.add("network", plain).save(folder.path("plain"));
  {
    ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{3}});
    nn::ServerNetwork<Kept, nn::Reference, Local> net{job.strategy(), 2};
    dist::Checkpoint{job.strategy()}.add("network", net).restore(folder.path("plain"));
    for (const nn::Parameter& parameter : net.layout())
      CHECK(values_of(net.parameter(job.scope(), parameter.name())) ==
            values_of(plain.parameter(alone.scope(), parameter.name())));
    CHECK(values_of(net.parts().state[0].read(job.scope())) == std::vector<float>(4, 0.5F));
    net.assign_parameter(job.scope(), "dense_1/bias", std::vector<float>{7, 8});
    dist::Checkpoint{job.strategy()}.add("network", net).save(folder.path("servers"));
  }
  nn::Network<Kept> restored{alone, 9};
  dist::Checkpoint{alone}.add("network", restored).restore(folder.path("servers"));
  CHECK(values_of(restored.parameter(alone.scope(), "dense_1/bias")) == std::vector<float>{7, 8});
  CHECK(values_of(restored.parameter(alone.scope(), "dense/kernel")) ==
        values_of(plain.parameter(alone.scope(), "dense/kernel")));
  CHECK(restored.state().whole(alone.scope())[0] == 0.5F);
}
