#include <dist/comm/mpi/rpc/open_call.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/mpi/rpc/quiet_call.hpp"

namespace {

using dist::mpi::detail::OpenCall;
using dist::mpi::detail::Packet;
using dist::mpi::detail::ServerWatch;

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
  static_assert(std::is_abstract_v<dist::mpi::detail::Listener> && std::is_abstract_v<ServerWatch>);
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

TEST_CASE("a client's view of a server says which process it is, and how long that may be silent") {
  struct Ready final : ServerWatch {
    using ServerWatch::ServerWatch;
    [[nodiscard]] bool is_ready() const override { return true; }
    void gone(std::size_t, std::optional<std::uint16_t>) override {}
  };
  const Ready watch{3, std::chrono::milliseconds{500}};
  CHECK(watch.peer == 3);
  CHECK(watch.silence == std::chrono::milliseconds{500});
}
