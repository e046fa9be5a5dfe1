#include "gates/networks.hpp"

#include <doctest/doctest.h>

#include "gates/files.hpp"

using Sentences = std::vector<std::string>;

TEST_CASE("calls, types and headers of MPI are found outside the MPI folders") {
  const auto sentence = [](const std::string& where, const std::string& name) {
    return Sentences{where + " names " + name + ", which belongs into comm/mpi or cluster/mpi"};
  };
  CHECK(gates::names_of_mpi({{"strategy/a.hpp", "\nMPI_Barrier(comm);"}}) ==
        sentence("strategy/a.hpp:2", "MPI_Barrier"));
  CHECK(gates::names_of_mpi({{"comm/a.hpp", "using C = mpi::Communicator;"}}) == sentence("comm/a.hpp:1", "mpi"));
  CHECK(gates::names_of_mpi({{"comm/a.hpp", "#include <dist/comm/mpi/wait.hpp>"}}) == sentence("comm/a.hpp:1", "mpi"));
  CHECK(gates::names_of_mpi({{"strategy/a.hpp", "struct Between<MpiAllReduce> {};"}}) ==
        sentence("strategy/a.hpp:1", "MpiAllReduce"));
  CHECK(gates::names_of_mpi({{"strategy/multi_worker.hpp", "mpi::CommRef comm;"}}) ==
        sentence("strategy/multi_worker.hpp:1", "mpi"));
}

TEST_CASE("MPI folders, comments, literals and default networks may name MPI") {
  CHECK(
      gates::names_of_mpi({{"comm/mpi/a.hpp", "MPI_Barrier(comm);"},
                           {"cluster/mpi/a.ipp", "mpi::check(0, 0);"},
                           {"strategy/a.hpp", "// MPI_Barrier\nauto text = \"mpi::ref(comm)\"; int impi = XMPI_;"},
                           {"strategy/multi_worker.hpp",
                            "#include <dist/cluster/mpi/mpi_network.hpp>\ntemplate <class Net = MpiNetwork> class A;"},
                           {"multi_worker.hpp", "#include <dist/comm/mpi/mpi_all_reduce.hpp>"}}) == Sentences{});
}

TEST_CASE("no call or type of MPI appears outside comm/mpi and cluster/mpi") {
  const auto headers = gates::read_tree(gates::source_dir() / "include/dist", {".hpp", ".ipp", ".cuh"});
  for (const auto& sentence : gates::names_of_mpi(headers)) FAIL_CHECK(sentence);
  CHECK(headers.size() > 200);
}
