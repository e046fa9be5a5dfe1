// The tests of worker copies over gRPC.
#include <dist/coordinator/worker_copy.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/strategy/default.hpp>
#include <dist/variable/partitioner.hpp>

#include "coordinator/served_job.hpp"
#include "coordinator/small_network.hpp"
#include "support/certificates.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/what_throws.hpp"

namespace nn = dist::nn;
using dist::Grpc;

namespace {

void trains_to_the_bits_of_default() {
  const nn::Adam function{.learning_rate = 0.05F};
  dist::Default alone;
  nn::Network<small::Dense> expected{alone, 7};
  nn::Optimizer optimizer{alone, expected, function};

  dist_test::ServedJob<Grpc> job(2, 1, {.partitioner = dist::FixedShards{2}, .bucket_bytes = 1});
  nn::Network<small::Dense> net{job.strategy(), 7};
  const nn::Optimizer on_servers{job.strategy(), net, function};
  const nn::Metric mean{job.strategy(), nn::MeanValue{}};
  float losses = 0;
  for (int step = 0; step < 4; ++step) {
    losses += alone.run([&](auto& replica) { return small::take_step(replica, expected, optimizer, step); });
    job.coordinator().schedule(
        [](auto& replica, auto& its_net, auto& its_optimizer, auto& its_mean, int its_step) {
          its_mean.update(replica, static_cast<double>(small::take_step(replica, its_net, its_optimizer, its_step)));
        },
        net, on_servers, mean, step);
  }
  job.coordinator().join();
  CHECK(mean.result(job.scope()) == doctest::Approx(static_cast<double>(losses) / 4));
  for (const nn::Parameter& parameter : net.layout()) {
    const auto values = net.parameter(job.scope(), parameter.name());
    const auto expected_values = expected.parameter(alone.scope(), parameter.name());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == expected_values[i]);
  }
}

}  // namespace

TEST_CASE("over gRPC, one worker trains to the bits of Default, and updates a metric on the servers") {
  trains_to_the_bits_of_default();
}

TEST_CASE("over TLS with certificates from the environment, a worker trains, and clients without certificates fail") {
  const support::TemporaryFolder folder;
  const dist::net::TlsFiles files = support::Authority{folder, "authority"}.task("all tasks");
  setenv("DIST_TLS_CA_FILE", files.authorities.c_str(), 1);
  setenv("DIST_TLS_CERT_FILE", files.certificate.c_str(), 1);
  setenv("DIST_TLS_KEY_FILE", files.key.c_str(), 1);
  trains_to_the_bits_of_default();

  using namespace std::chrono_literals;
  dist_test::ServedJob<Grpc> job(1, 1);
  const auto& servers = job.strategy().server_endpoints();
  const dist::server::Served server{{dist::TaskType::parameter_server, 0}, servers.front()};
  const std::string said = support::what_throws<dist::ServerUnavailable>([&] {
    const dist::server::Session<Grpc> session{{server}, {{.channel = {}, .wait_for_servers = 3s}}};
  });
  CHECK(
      said.starts_with("Parameter server 0 at " + to_string(servers.front()) + " did not become available within 3 s"));
  CHECK(said.find("this task needs certificates (DIST_TLS_CERT_FILE)") != std::string::npos);
  for (const char* const variable : {"DIST_TLS_CA_FILE", "DIST_TLS_CERT_FILE", "DIST_TLS_KEY_FILE"}) unsetenv(variable);
}
