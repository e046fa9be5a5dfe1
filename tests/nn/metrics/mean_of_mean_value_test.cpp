#include <dist/nn/metrics/mean_of.hpp>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

namespace nn = dist::nn;

TEST_CASE("MeanValue is the weighted mean over replicas and steps") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  nn::Metric mean{strategy, nn::MeanValue{}};
  CHECK(mean.name() == "mean");
  strategy.run([&](auto& replica) { mean.update(replica, static_cast<double>(replica.replica_id().index())); });
  CHECK(mean.result(strategy.scope()) == 1.0);  // of 0, 1, 2
  strategy.run([&](auto& replica) { mean.update(replica, 3.0, 2.0); });
  CHECK(mean.result(strategy.scope()) == doctest::Approx((3.0 + 18.0) / 9));
  strategy.run([&](auto& replica) { mean.update(replica, 100.0, 0.0); });  // an empty batch
  CHECK(mean.result(strategy.scope()) == doctest::Approx(21.0 / 9));
}
