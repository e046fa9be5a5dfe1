#include <dist/strategy/one_process.hpp>

#include <array>
#include <cstddef>
#include <memory>

#include <doctest/doctest.h>

#include <dist/comm/communicator.hpp>

static_assert(dist::OneProcess::size() == 1 && dist::OneProcess::rank() == 0);
static_assert(dist::CollectivesOfOne<dist::OneProcess::WorkerCollectives>);

TEST_CASE("the collectives of all replicas are those within the process") {
  const int of_process = 3;
  const int queue = 0;
  const dist::OneProcess::CollectiveState joint{dist::OneProcess{}, of_process};
  CHECK(&dist::OneProcess::join(of_process, queue, joint) == &of_process);
  CHECK(&dist::OneProcess::adjusted(of_process) == &of_process);
}

namespace {
struct Memory {
  explicit Memory(const std::array<std::size_t, 2>& devices) : first(devices[0]), last(devices[1]) {}
  std::size_t first;
  std::size_t last;
};
struct Replicas {
  template <class M, class Devices>
  [[nodiscard]] std::shared_ptr<M> memory(const Devices& devices) const {
    return std::make_shared<M>(devices);
  }
};
}  // namespace

TEST_CASE("the replicas allocate the memory of variables on the requested devices") {
  const Replicas replicas;
  const dist::OneProcess::CollectiveState joint{dist::OneProcess{}, replicas};
  const std::shared_ptr<Memory> memory =
      dist::OneProcess::memory<Memory>(std::array<std::size_t, 2>{4, 7}, replicas, joint);
  CHECK(memory->first == 4);
  CHECK(memory->last == 7);
}

TEST_CASE("a single process decides about the end of its data alone") {
  auto pass = dist::OneProcess::agreement().begin();
  pass.start(true);
  CHECK(pass.any());
}
