// Processes under mpirun that simulate several nodes, for the suite of policies between processes.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/hierarchical.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/node/communicator.hpp>
#include <dist/comm/node/find_nodes.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/shared_memory.hpp>

namespace support {

/// All processes on one node.
struct OneNode {
  static std::string host(std::size_t) { return "here"; }
};
/// Ranks 0 and 1 on one node, the others on another.
struct TwoNodes {
  static std::string host(std::size_t rank) { return rank < 2 ? "here" : "there"; }
};
/// Round-robin, so that the ranks of a node are not consecutive.
struct DealtNodes {
  static std::string host(std::size_t rank) { return rank % 2 == 0 ? "here" : "there"; }
};

/// The communication between the processes of MultiWorker, with the policy `Wire` between nodes.
template <class Wire, class Nodes = OneNode>
class NodeGroup {
  using InNode = dist::NodeAllReduce::On<dist::NodeCommunicator>;
  using BetweenNodes = typename Wire::template On<dist::mpi::Communicator>;

 public:
  using Collectives = dist::Hierarchical<InNode, BetweenNodes>;
  /// Several nodes combine levels, each of which is tested separately with every type.
  static constexpr bool every_type = std::same_as<Nodes, OneNode>;

  explicit NodeGroup(std::chrono::nanoseconds timeout)
      : memory_(std::size_t{64} << 20),
        window_(1, std::span{memory_.data(), memory_.size()}.subspan(dist::NodeGroup::header_bytes)) {
    int number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    const auto rank = static_cast<std::size_t>(number);
    const dist::mpi::CommunicatorOptions options{.timeout = timeout, .host = Nodes::host(rank)};
    const dist::mpi::Communicator all{dist::mpi::ref(MPI_COMM_WORLD), options};
    dist::FoundNodes nodes = dist::find_nodes(all, memory_, 0, false);
    layout_ = std::make_unique<dist::GroupLayout>(std::move(nodes.layout));
    const std::span<const std::size_t> here = layout_->members(layout_->group());
    const auto member = static_cast<std::size_t>(std::find(here.begin(), here.end(), rank) - here.begin());
    group_ =
        std::make_unique<dist::NodeGroup>(memory_, window_, member, rank, Nodes::host(rank), std::move(nodes.peers),
                                          health_, dist::detail::SpinBudget::shared_core(), timeout);
    std::optional<BetweenNodes> wire;
    MPI_Comm leaders = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, member == 0 ? 0 : MPI_UNDEFINED, number, &leaders);
    if (leaders != MPI_COMM_NULL) {
      dist::mpi::CommunicatorOptions of_leaders = options;
      of_leaders.worker = rank;
      if (layout_->groups() > 1) wire.emplace(dist::mpi::Communicator{dist::mpi::ref(leaders), of_leaders});
      MPI_Comm_free(&leaders);
    }
    collectives_.emplace(*layout_, InNode{dist::NodeCommunicator{*group_}}, std::move(wire), timeout);
  }

  [[nodiscard]] const Collectives& collectives() const noexcept { return *collectives_; }
  [[nodiscard]] const dist::GroupLayout& layout() const noexcept { return *layout_; }
  [[nodiscard]] dist::Arena& window() noexcept { return window_; }
  void wait_outside() const { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  dist::SharedMemory memory_;
  dist::Arena window_;
  dist::PeerHealth health_;
  std::unique_ptr<dist::GroupLayout> layout_;
  std::unique_ptr<dist::NodeGroup> group_;
  std::optional<Collectives> collectives_;
};

}  // namespace support
