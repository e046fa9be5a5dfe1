#include <dist/comm/mpi/rpc/open_call.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/mpi/rpc/quiet_call.hpp"

namespace {

using dist::mpi::detail::OpenCall;
using dist::mpi::detail::Packet;

struct Noted final : dist_test::QuietCall {
  using QuietCall::QuietCall;
  void take(Packet packet) override { taken.push_back(packet.call); }
  void lose(const std::string& its_why) override { why = its_why; }

  std::vector<std::uint64_t> taken;
  std::string why;
};

}  // namespace

TEST_CASE("a call on either side is told of packets, transfers and losses, and may own itself while that goes on") {
  static_assert(std::is_abstract_v<OpenCall> && std::is_base_of_v<dist::mpi::detail::TransferOwner, OpenCall>);
  static_assert(std::is_abstract_v<dist::mpi::detail::Listener> && std::is_abstract_v<dist::mpi::detail::ServerWatch>);
  const auto call = std::make_shared<Noted>(3, std::chrono::milliseconds{500});
  OpenCall& seen = *call;
  CHECK(seen.peer == 3);
  CHECK(seen.silence == std::chrono::milliseconds{500});
  seen.take({.call = 7});
  seen.lose("it is gone");
  CHECK(call->taken == std::vector<std::uint64_t>{7});
  CHECK(call->why == "it is gone");
  CHECK(seen.shared_from_this() == call);
}
