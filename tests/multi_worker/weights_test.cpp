// Weights in files: the first process writes them, all read them.
// ranks: 1 2 4
#include <dist/multi_worker.hpp>

#include <cstdint>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <support/temporary_folder.hpp>

using Workers = dist::MultiWorker<dist::RingAllReduce>;

namespace {

struct Parts {
  explicit Parts(Workers& strategy)
      : weights(strategy.variable<float, dist::OnWrite, dist::Mean>({2}, 1.5F)),
        count(strategy.variable<std::int64_t, dist::OnRead, dist::Sum>({}, 0)) {}
  void track(auto& visit) {
    visit("weights", weights);
    visit("count", count);
  }
  dist::DistributedVariable<float, dist::OnWrite, dist::Mean> weights;
  dist::DistributedVariable<std::int64_t, dist::OnRead, dist::Sum> count;
};

/// Variables with the same keys in one process.
struct Other {
  dist::DistributedVariable<float, dist::OnWrite, dist::Mean>& weights;
  std::int64_t count;
  void track(auto& visit) {
    visit("weights", weights);
    visit("count", count);
  }
};

/// Returns a path in a folder of the first process, the same on all processes.
std::string shared_path(Workers& strategy, const support::TemporaryFolder& mine) {
  char path[256] = {};
  mine.path("weights.safetensors").copy(path, sizeof path - 1);
  strategy.workers().broadcast(0, std::span<char>{path});
  return path;
}

}  // namespace

TEST_CASE("all processes load the weights of the first one, as variables outside replica functions") {
  const support::TemporaryFolder folder;
  Workers strategy{2};
  const std::string path = shared_path(strategy, folder);
  Parts parts{strategy};
  strategy.run([&](const auto& replica) { parts.count.component(replica)[0] = 1; });
  dist::save_weights(strategy, parts, path);
  const bool is_first = strategy.first_local_replica() == 0;
  CHECK(folder.names().size() == (is_first ? 1 : 0));

  Parts loaded{strategy};
  auto scope = strategy.scope();
  loaded.weights.assign(scope, 0.0F);
  CHECK(dist::load_weights(strategy, loaded, path).empty());
  CHECK(loaded.weights.whole(scope)[1] == 1.5F);
  CHECK(loaded.count.whole(scope)[0] == static_cast<std::int64_t>(strategy.num_replicas_in_sync()));
}

TEST_CASE("different files in different processes are rejected before anything changes") {
  const support::TemporaryFolder folder;
  Workers strategy{1};
  if (strategy.num_replicas_in_sync() == 1) return;
  const std::string shared = shared_path(strategy, folder);
  Parts parts{strategy};
  dist::save_weights(strategy, parts, shared);
  const std::string mine = folder.path("mine.safetensors");
  if (strategy.first_local_replica() != 0) {
    dist::Default alone;
    auto weights = alone.variable<float, dist::OnWrite, dist::Mean>({2}, 7.0F);
    Other other{weights, 0};
    dist::save_weights(alone, other, mine);
    CHECK_THROWS_AS(dist::load_weights(strategy, parts, mine), dist::Error);
  } else {
    CHECK_THROWS_AS(dist::load_weights(strategy, parts, shared), dist::Error);
  }
  strategy.run([&](const auto& replica) { CHECK(parts.weights.component(replica)[1] == 1.5F); });
}
