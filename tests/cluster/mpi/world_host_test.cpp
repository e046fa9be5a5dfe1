#include <dist/cluster/mpi/world_host.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <cluster/mpi/world_ranks.hpp>
#include <net/ports.hpp>
#include <support/processes.hpp>

using namespace dist_test;
using dist::ClusterSpec;
using dist::TaskType;

TEST_CASE("workers of a cluster form one world, even if only the first one's address is listed") {
  for (const bool first_alone : {false, true}) {
    CAPTURE(first_alone);
    std::vector<std::string> addresses;
    for (const auto& endpoint : free_endpoints(3))
      addresses.push_back(first_alone && !addresses.empty() ? "" : to_string(endpoint));
    const ClusterSpec cluster{{TaskType::worker, addresses}};
    support::Processes processes{3, [&](std::size_t worker) {
                                   const std::unique_ptr<dist::detail::WorldHandle> hosted =
                                       dist::detail::join_hosted_world(cluster, worker, "the test", 60s);
                                   int given = 0, rank = 0, size = 0;
                                   MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
                                   hosted->initialised();
                                   MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                                   MPI_Comm_size(MPI_COMM_WORLD, &size);
                                   const bool watched = hosted->lifeline() >= 0 && hosted->server() > 0;
                                   hosted->goodbye();
                                   MPI_Finalize();
                                   return rank == static_cast<int>(worker) && size == 3 && watched ? 0 : 1;
                                 }};
    CHECK(processes.wait() == std::vector<int>(3, 0));
  }
}

TEST_CASE("an invalid address is refused, naming its task and source") {
  CHECK_THROWS_WITH_AS(
      dist::detail::join_hosted_world(ClusterSpec{{TaskType::worker, {"a:1", "b"}}}, 0, "TF_CONFIG", 1s),
      "The address 'b' of worker 1 of TF_CONFIG cannot be used (it has no port). Write host:port, such as "
      "host0.example:2222.",
      dist::InvalidArgument);
}
