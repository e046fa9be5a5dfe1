#include <dist/device/thrust_policy.hpp>

#include <doctest/doctest.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <cstddef>
#include <tuple>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

TEST_CASE("every replica sorts, scans and reduces by key with Thrust") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  const auto results = strategy.run([](auto& replica) {
    const int id = static_cast<int>(replica.replica_id().index());
    std::vector<int> keys{3, id, 3, 1}, values{1, 2, 4, 8}, distinct(4), sums(4);
    thrust::stable_sort_by_key(dist::thrust_policy(replica), keys.begin(), keys.end(), values.begin());
    const auto ends = thrust::reduce_by_key(dist::thrust_policy(replica), keys.begin(), keys.end(), values.begin(),
                                            distinct.begin(), sums.begin());
    sums.resize(static_cast<std::size_t>(ends.second - sums.begin()));
    std::vector<int> running(sums.size());
    thrust::inclusive_scan(dist::thrust_policy(replica), sums.begin(), sums.end(), running.begin());
    return std::tuple{keys, sums, running};
  });
  const auto of_replica = strategy.local_results(results);
  using Numbers = std::vector<int>;
  CHECK(of_replica[0] == std::tuple{Numbers{0, 1, 3, 3}, Numbers{2, 8, 5}, Numbers{2, 10, 15}});
  CHECK(of_replica[1] == std::tuple{Numbers{1, 1, 3, 3}, Numbers{10, 5}, Numbers{10, 15}});
}
