#include <dist/comm/messages/message_collectives.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/core/reduce_op.hpp>

#include <support/simulated_network.hpp>

namespace {

using Communicator = support::SimulatedNetwork::Communicator;

/// Records its calls, and moves no values.
struct Noting : dist::ReducesByRecords {
  explicit Noting(const Communicator&) {}
  void broadcast(std::size_t, dist::detail::Elements) const { asked += "broadcast "; }
  void gather(dist::detail::Elements, dist::detail::FunctionRef<dist::IndexRange(std::size_t)>) const {
    asked += "gather ";
  }
  void all_reduce_bytes(const dist::Reduction&, std::span<std::byte>) const { asked += "all_reduce "; }
  void reduce_scatter(const dist::Reduction&, std::span<const std::byte>, dist::detail::UseReduced) const {
    asked += "reduce_scatter ";
  }
  static inline std::string asked;
};

std::string asked_of(std::size_t members) {
  Noting::asked.clear();
  support::SimulatedNetwork network{members, {}};
  static_cast<void>(network.run([&](const Communicator& comm) {
    const dist::detail::MessageCollectives<Communicator, Noting> ops{comm};
    std::vector<float> values(10);
    ops.all_reduce(dist::sum, std::span{values});
    ops.broadcast(0, std::span{values});
    const std::vector<std::size_t> counts(members);
    ops.all_gather(std::span<const float>{}, std::span<const std::size_t>{counts}, std::span<float>{});
    ops.reduce_scatter(dist::sum, std::span<const float>{values}, [](std::size_t, std::span<const float>) {});
  }));
  return Noting::asked;
}

}  // namespace

TEST_CASE("the algorithm is called only if there are several members") {
  CHECK(asked_of(1).empty());
  CHECK(asked_of(2) == "all_reduce broadcast gather reduce_scatter all_reduce broadcast gather reduce_scatter ");
}
