#include <dist/checkpoint/save_weights.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/io/safetensors.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/distributed_variable.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

using dist::io::Safetensors;

namespace {

template <class S>
struct Parts {
  explicit Parts(S& strategy)
      : weights(strategy.template variable<float, dist::OnWrite, dist::Mean>({2}, 1.5F)),
        statistics(strategy.template variable<double, dist::OnRead, dist::Mean>({}, 2.0)) {}
  void track(auto& visit) {
    visit("weights", weights);
    visit("statistics", statistics);
    visit("epoch", epoch);
  }
  dist::DistributedVariable<float, dist::OnWrite, dist::Mean> weights;
  dist::DistributedVariable<double, dist::OnRead, dist::Mean> statistics;
  std::int64_t epoch = 3;
};

}  // namespace

TEST_CASE("the file contains all tracked values, as read outside replica functions") {
  const support::TemporaryFolder folder;
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  Parts parts{strategy};
  strategy.run([&](const auto& replica) {
    parts.statistics.component(replica)[0] = static_cast<double>(10 * (1 + replica.replica_id().index()));
  });
  dist::save_weights(strategy, parts, folder.path("weights.safetensors"));
  const Safetensors file{folder.path("weights.safetensors")};
  CHECK(file.entries().size() == 3);
  CHECK(file.read<float>("weights")[1] == 1.5F);
  CHECK(file.read<double>("statistics")[0] == 15);
  CHECK(file.read<std::int64_t>("epoch")[0] == 3);
}

TEST_CASE("a failed save keeps the older file") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  Parts parts{strategy};
  dist::save_weights(strategy, parts, folder.path("weights.npz"));
  const std::string before = folder.read("weights.npz");
  CHECK_THROWS_AS(dist::save_weights(strategy, parts, folder.path("weights.pt")), dist::InvalidArgument);
  CHECK_THROWS_AS(dist::save_weights(strategy, parts, folder.path("no/weights.npz")), dist::FileError);
  CHECK(folder.names() == std::vector<std::string>{"weights.npz"});
  CHECK(folder.read("weights.npz") == before);
}
