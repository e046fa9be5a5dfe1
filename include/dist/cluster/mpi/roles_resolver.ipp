#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <dist/cluster/launcher.hpp>
#include <dist/cluster/mpi/roles_resolver.hpp>
#include <dist/comm/collective_call.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/secret.hpp>
#include <dist/net/socket_address.hpp>

namespace dist {

namespace detail {

/// The data that processes exchange.
struct RoleClaim {
  std::uint64_t parameter_servers = 0;
  std::uint64_t port = 0;
  std::array<char, 256> host{};
  std::array<char, 256> machine{};
  std::array<char, 512> secret{};
  std::array<char, 512> error{};
};

template <std::size_t size>
void set(std::array<char, size>& to, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), size - 1), to.begin());
}

[[nodiscard]] DIST_INLINE RoleClaim role_claim(std::size_t parameter_servers, std::size_t rank,
                                               net::ReservedPort& port) {
  RoleClaim claim;
  claim.parameter_servers = parameter_servers;
  try {
    port = net::reserve_port();
    claim.port = port.number;
    set(claim.host, net::host_name());
    set(claim.machine, net::machine_id());
    if (rank != 0) return claim;
    std::string secret = net::job_secret();
    if (secret.empty()) secret = net::random_secret();
    if (secret.size() >= claim.secret.size())
      throw InvalidArgument(
          "The secret of the job cannot be sent to its processes",
          concat("it has ", secret.size(), " bytes, but at most ", claim.secret.size() - 1, " can be sent"),
          "Choose a shorter secret");
    set(claim.secret, secret);
  } catch (const Error& error) {
    set(claim.error, error.what());
  }
  return claim;
}

}  // namespace detail

DIST_INLINE MpiRolesResolver::MpiRolesResolver(Options options) : world_(options.start_timeout) {
  const Launcher launcher = find_launcher();
  source_ = launcher.name.empty() ? "MPI" : launcher.name;
  const std::size_t least = options.parameter_servers + 2;
  const std::string command = concat("Start with mpirun -n ", least + 1, " PROGRAM, or more processes");
  if (options.parameter_servers == 0)
    throw InvalidArgument("A job with parameter servers has no parameter servers", "parameter_servers is 0",
                          "Pass the number of parameter servers to dist::MpiRolesResolver");
  if (world_.is_alone()) {
    require_world_size(launcher, 1);
    throw InvalidArgument("No MPI launcher has started this process",
                          "its variables, such as OMPI_COMM_WORLD_SIZE, are not set", command);
  }
  if (world_.size() < least)
    throw InvalidArgument(
        concat(source_, " has started too few processes"),
        concat(world_.size(), " of them, for a chief, at least one worker and ", options.parameter_servers,
               options.parameter_servers == 1 ? " parameter server" : " parameter servers"),
        command);
  exchange(options);
}

DIST_INLINE void MpiRolesResolver::exchange(const Options& options) {
  const std::size_t rank = mpi::detail::rank_in(world_.comm().get()), size = world_.size();
  const detail::RoleClaim own = detail::role_claim(options.parameter_servers, rank, port_);
  std::vector<detail::RoleClaim> claims(size);
  {
    PeerHealth health;
    Watchdog watchdog{health,
                      options.start_timeout,
                      std::chrono::seconds{1},
                      {},
                      "Create a dist::MpiRolesResolver in all processes, or give it a longer start_timeout"};
    const CollectiveCall call{.operation = "the exchange of addresses"};
    const Watchdog::Guard guard{&watchdog, call};
    DIST_MPI_CALL(MPI_Allgather(&own, sizeof own, MPI_BYTE, claims.data(), sizeof own, MPI_BYTE, world_.comm().get()));
  }
  bool one_machine = true;
  for (std::size_t other = 0; other < size; ++other) {
    if (claims[other].error[0] != '\0')
      throw InvalidArgument(concat("Rank ", other, " of MPI_COMM_WORLD cannot join the job"),
                            claims[other].error.data(), "Correct this on its host");
    if (claims[other].parameter_servers != options.parameter_servers)
      throw InvalidArgument(concat("Ranks ", rank, " and ", other, " have different numbers of parameter servers"),
                            concat(options.parameter_servers, " and ", claims[other].parameter_servers),
                            "Give every process the same number of parameter servers");
    one_machine = one_machine && own.machine[0] != '\0' && claims[other].machine == own.machine;
  }
  const std::size_t first_server = size - options.parameter_servers;
  for (std::size_t other = 0; other < size; ++other) {
    const Task task = other == 0             ? Task{TaskType::chief, 0}
                      : other < first_server ? Task{TaskType::worker, other - 1}
                                             : Task{TaskType::parameter_server, other - first_server};
    if (other == rank) task_ = task;
    cluster_.add(task, to_string(net::Endpoint{one_machine ? "127.0.0.1" : claims[other].host.data(),
                                               concat(claims[other].port)}));
  }
  secret_ = claims[0].secret.data();
}

}  // namespace dist
