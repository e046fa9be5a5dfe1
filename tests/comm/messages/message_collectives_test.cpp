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

/// Notes what it is asked for, and moves nothing.
struct Noting {
  explicit Noting(const Communicator&) {}
  void broadcast(std::size_t, dist::detail::Elements) const { asked += "broadcast "; }
  void gather(dist::detail::Elements, dist::detail::FunctionRef<dist::IndexRange(std::size_t)>) const {
    asked += "gather ";
  }
  template <class T, class Op>
  void all_reduce(Op, std::span<T>) const {
    asked += "all_reduce ";
  }
  template <class T, class Op, class Use>
  void reduce_scatter(Op, std::span<const T>, Use&&) const {
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

TEST_CASE("the algorithm is asked where there are several members; one member has everything") {
  CHECK(asked_of(1).empty());
  CHECK(asked_of(2) == "all_reduce broadcast gather reduce_scatter all_reduce broadcast gather reduce_scatter ");
}
