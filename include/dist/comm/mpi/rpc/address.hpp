#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/net/endpoint.hpp>

namespace dist::mpi {

/// The address of a server in a process of MPI: "rank-3:1". Ports tell the servers of a process apart.
[[nodiscard]] inline net::Endpoint endpoint_of_rank(std::size_t rank, std::size_t port = 1) {
  return {text("rank-", rank), text(port)};
}

/// The rank that an address names. Throws InvalidArgument for one that names no process of `size`.
[[nodiscard]] inline std::size_t rank_of(const net::Endpoint& endpoint, std::size_t size) {
  constexpr std::string_view prefix = "rank-";
  const std::string_view host = endpoint.host;
  std::size_t rank = size;
  if (host.starts_with(prefix)) {
    const char* const end = host.data() + host.size();
    const auto [rest, error] = std::from_chars(host.data() + prefix.size(), end, rank);
    if (error != std::errc{} || rest != end) rank = size;
  }
  if (rank >= size)
    throw InvalidArgument(text("Address ", quoted(to_string(endpoint)), " is that of no process of MPI"),
                          text("MPI has started ", size, ", rank-0 to rank-", size - 1),
                          "Take the list of tasks from dist::MpiRolesResolver, or let calls travel by dist::Grpc");
  return rank;
}

}  // namespace dist::mpi
