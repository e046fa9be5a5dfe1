#include <dist/async/network_replica.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <dist/strategy/default.hpp>

#include "async/served_job.hpp"
#include "async/small_network.hpp"

namespace nn = dist::nn;
using dist::Local;
using dist_test::ServedJob;

namespace {

using Small = nn::ServerNetwork<small::Dense, nn::Reference, Local>;

/// The same variables by name, as a worker gets them.
Small::Parts sent(const Small& net) { return dist::from_bytes<Small::Parts>(dist::to_bytes(net.parts())); }

}  // namespace

TEST_CASE("a replica computes with the values that the servers have when it pulls") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  Small net{job.strategy(), 3};
  nn::NetworkReplica<Small> replica{sent(net)};
  const auto batch = small::batch_of(0);
  const auto output = [&](auto& context) { return nn::values_of(replica.forward(context, batch.x, nn::inference))[0]; };

  dist::Default alone;
  nn::Network<small::Dense> expected{alone, 3};
  const auto first = alone.run([&](auto& context) { return nn::values_of(expected.forward(context, batch.x))[0]; });
  CHECK(replica.run(job.scope(), output) == first);

  net.assign_parameter(job.scope(), "dense_1/kernel", 0.0F);
  net.assign_parameter(job.scope(), "dense_1/bias", 4.0F);
  CHECK(replica.strategy().run(output) == first);
  replica.pull(job.scope());
  CHECK(replica.strategy().run(output) == 4);
}

TEST_CASE("what has not changed on the servers is not pulled again") {
  ServedJob<Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  Small net{job.strategy(), 3};
  nn::NetworkReplica<Small> replica{sent(net)};
  replica.pull(job.scope());
  const auto scope = replica.strategy().scope();
  replica.parameters().assign(scope, 9.0F);  // here alone, to see what comes
  replica.pull(job.scope());
  CHECK(replica.parameter(scope, "dense/bias")[0] == 9);
  net.assign_parameter(job.scope(), "dense/bias", 2.0F);
  replica.pull(job.scope());
  CHECK(replica.parameter(scope, "dense/bias")[0] == 2);
  CHECK(replica.parameter(scope, "dense/kernel")[0] == 9);
}

TEST_CASE("parts of another network are refused") {
  ServedJob<Local> job(1, 1);
  Small net{job.strategy()};
  Small::Parts fewer = sent(net);
  fewer.parameters.pop_back();
  CHECK_THROWS_WITH_AS(nn::NetworkReplica<Small>{std::move(fewer)},
                       doctest::Contains("The variables of a network are those of another one"), dist::ArchiveError);
  Small::Parts swapped = sent(net);
  std::swap(swapped.parameters[0], swapped.parameters[1]);
  CHECK_THROWS_AS(nn::NetworkReplica<Small>{std::move(swapped)}, dist::ArchiveError);
}
