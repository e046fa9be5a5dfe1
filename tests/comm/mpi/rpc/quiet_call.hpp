/// A call of tests: those that look at something override it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dist/comm/mpi/rpc/open_call.hpp>

namespace dist_test {

struct QuietCall : dist::mpi::detail::OpenCall {
  using OpenCall::OpenCall;
  void take(dist::mpi::detail::Packet) override {}
  void look(std::chrono::steady_clock::time_point) override {}
  void lose(const std::string&) override {}
  void sent() override {}
  void received(std::vector<dist::mpi::detail::ReceivedPart>) override {}
  void broken(std::string_view) override {}
  void given_up() override {}
};

}  // namespace dist_test
