// What bench_server measures, with the server in another process of this machine by MPI and within the process, in turns.
//
//   mpirun -n 2 bench_mpi_server [ROUNDS]
#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include <dist/comm/local_transport.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/mpi/rpc.hpp>
#include <dist/server/store.hpp>

#include "support/arguments.hpp"
#include "support/server_variables.hpp"
#include "support/turns.hpp"

namespace {

using dist::net::Endpoint;

/// What the second rank does until the first one says that it has done its work.
void serve(const Endpoint& own) {
  dist::server::Store store{dist::server::Reach::machine};
  std::atomic<bool> ended{false};
  auto methods = dist::server::store_methods<dist::Mpi::Exchange>(store);
  methods.push_back({"end", [&](dist::Mpi::Exchange& exchange) {
                       exchange.reply({});
                       ended = true;
                     }});
  const dist::Mpi::Server server{own, {}, std::move(methods)};
  while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds{10});
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{
      argc, argv, 1, "[ROUNDS]",
      "Pushes and pulls of variables on a parameter server, by MPI and within the process: mpirun -n 2 "
      "bench_mpi_server."};
  const int rounds = arguments.number(0, 20);
  const dist::mpi::Environment environment{dist::ThreadLevel::multiple};
  const Endpoint server = dist::mpi::endpoint_of_rank(1);
  if (dist::mpi::detail::rank_in(MPI_COMM_WORLD) == 1) {
    serve(server);
    return 0;
  }
  dist::server::Store store;
  const Endpoint here{"here", "1"};
  const dist::Local::Server listening{here, {}, dist::server::store_methods<dist::Local::Exchange>(store)};
  bench::ServerVariables<dist::Local> local{here};
  bench::ServerVariables<dist::Mpi> mpi{server};
  std::vector<bench::Row> rows = bench::side_by_side({mpi.rows("Mpi"), local.rows("Local")});
  for (std::size_t i = 0; i < 2; ++i) rows[i].repetitions = 20'000;
  bench::run_in_turns(rows, rounds);
  bench::print_table(rows, rounds, "a call");
  dist::Mpi::Channel{server, {}}.call("end", {}, {});
}
