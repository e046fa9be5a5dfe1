#include <dist/cluster/mpi/roles_resolver.hpp>
// ranks: 1 3 6

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/net/listen.hpp>
#include <dist/server/serve.hpp>

#include "support/what_throws.hpp"

using dist::InvalidArgument;
using dist::MpiRolesResolver;
using dist::Task;
using dist::TaskType;
using support::what_throws;

static_assert(dist::ClusterResolver<MpiRolesResolver> && dist::EndsTogether<MpiRolesResolver>);

namespace {

std::size_t rank() { return dist::mpi::detail::rank_in(MPI_COMM_WORLD); }
std::size_t size() { return dist::mpi::detail::size_of(MPI_COMM_WORLD); }

}  // namespace

TEST_CASE("rank 0 is the chief, the last ranks are parameter servers, the ranks between are workers") {
  if (size() < 3) return;
  const std::size_t servers = size() / 3;
  const MpiRolesResolver resolver{{.parameter_servers = servers}};
  const dist::ClusterSpec cluster = resolver.cluster_spec();
  CHECK(cluster.task_indices(TaskType::chief).size() == 1);
  CHECK(cluster.task_indices(TaskType::worker).size() == size() - 1 - servers);
  CHECK(cluster.task_indices(TaskType::parameter_server).size() == servers);
  const Task expected = rank() == 0                 ? Task{TaskType::chief, 0}
                        : rank() < size() - servers ? Task{TaskType::worker, rank() - 1}
                                                    : Task{TaskType::parameter_server, rank() - (size() - servers)};
  CHECK(resolver.task() == expected);
  CHECK_FALSE(resolver.num_accelerators());
  CHECK(dist::server::served_by(cluster, resolver.describe()).size() == size() - 1);
  CHECK_NOTHROW(dist::validate_parameter_servers(cluster, resolver.task(), resolver.describe()));
}

TEST_CASE("all processes have the same addresses and the same secret, and each can listen at its own address") {
  if (size() < 3) return;
  const MpiRolesResolver resolver{{.parameter_servers = 1}};
  std::string own = resolver.secret();
  std::set<std::string> addresses;
  for (const Task task : resolver.cluster_spec().tasks()) {
    const dist::net::Endpoint endpoint = dist::task_endpoint(resolver.cluster_spec(), task, "MPI");
    CHECK(endpoint.host == "127.0.0.1");  // all are on this machine
    addresses.insert(to_string(endpoint));
    own += to_string(endpoint) + ",";
  }
  CHECK(addresses.size() == size());
  CHECK(resolver.secret().size() >= 32);
  own.resize(1024);
  std::string of_chief = own;
  MPI_Bcast(of_chief.data(), 1024, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK(own == of_chief);
  CHECK_NOTHROW(dist::net::listen_at(dist::task_endpoint(resolver.cluster_spec(), *resolver.task(), "MPI"), {}));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("too few processes, and a job without parameter servers, are refused") {
  const std::size_t servers = size();
  CHECK(what_throws<InvalidArgument>([&] { MpiRolesResolver{{.parameter_servers = servers}}; })
            .ends_with(dist::concat(" has started too few processes (", size(),
                                    " of them, for a chief, at least one worker and ", servers, " parameter server",
                                    servers == 1 ? "" : "s", "). Start with mpirun -n ", servers + 3,
                                    " PROGRAM, or more processes.")));
  CHECK(what_throws<InvalidArgument>([] { MpiRolesResolver{{.parameter_servers = 0}}; }) ==
        "A job with parameter servers has no parameter servers (parameter_servers is 0). Pass the number of parameter "
        "servers to dist::MpiRolesResolver.");
}

TEST_CASE("processes with different numbers of parameter servers are refused") {
  if (size() < 6) return;
  CHECK(what_throws<InvalidArgument>([] {
          MpiRolesResolver{{.parameter_servers = rank() == 1 ? 2U : 1U}};
        }).find(" have different numbers of parameter servers (") != std::string::npos);
}
