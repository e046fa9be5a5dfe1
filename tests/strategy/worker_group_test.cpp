#include <dist/strategy/worker_group.hpp>
// ranks: 1 2 3

#include <cstddef>
#include <span>
#include <string>

#include <doctest/doctest.h>

namespace {

dist::WorkerWorld world() { return dist::WorkerWorld{dist::mpi::ref(MPI_COMM_WORLD)}; }
std::size_t size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return static_cast<std::size_t>(size);
}
template <class Group>
std::string refusal(const dist::MultiWorkerOptions& options) {
  try {
    const Group group{world(), options};
  } catch (const dist::InvalidArgument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("processes of a node meet in its memory, where their variables lie") {
  dist::detail::WorkerGroup<dist::RingAllReduce> group{world(), {}};
  CHECK(group.layout().size() == size());
  CHECK(group.layout().groups() == 1);
  float* const mine = reinterpret_cast<float*>(group.memory()->at(0, group.memory()->allocate(4000)));
  const std::span<float> values{mine, 1000};
  for (float& value : values) value = static_cast<float>(group.layout().rank());
  group.workers().all_reduce(dist::sum, values);
  for (const float value : values) CHECK(value == static_cast<float>(size() * (size() - 1) / 2));
}

TEST_CASE("without a hierarchy every process is a node of its own; MPI's policy has none by itself") {
  dist::MultiWorkerOptions flat;
  flat.hierarchical = false;
  CHECK(dist::detail::WorkerGroup<dist::RingAllReduce>{world(), flat}.layout().groups() == size());
  CHECK(dist::detail::WorkerGroup<dist::MpiAllReduce>{world(), {}}.layout().groups() == size());
  flat.hierarchical = true;
  CHECK(dist::detail::WorkerGroup<dist::MpiAllReduce>{world(), flat}.layout().groups() == 1);
}

TEST_CASE("options that cannot be are refused on every process (spec A10, H13)") {
  using Group = dist::detail::WorkerGroup<dist::RingAllReduce>;
  dist::MultiWorkerOptions options;
  options.communication.timeout = std::chrono::seconds{-1};
  CHECK(refusal<Group>(options).find("timeout") != std::string::npos);
  if (size() == 1) return;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  options = {};
  options.replicas = rank == 1 ? 3 : 2;
  CHECK(refusal<Group>(options).find("worker 0 has 2, worker 1 has 3") != std::string::npos);
  options = {};
  options.hierarchical = false;
  CHECK(refusal<dist::detail::WorkerGroup<dist::SharedWindowAllReduce>>(options).find("several nodes") !=
        std::string::npos);
}

TEST_CASE("a process without others needs no MPI, and works alike") {
  dist::detail::WorkerGroup<dist::RingAllReduce> group{dist::WorkerWorld{}, {}};
  CHECK(group.layout().size() == 1);
  float value = 3;
  group.workers().all_reduce(dist::mean, std::span<float>{&value, 1});
  CHECK(value == 3);
}

}  // namespace
