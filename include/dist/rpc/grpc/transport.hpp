#pragma once

#include <dist/core/config.hpp>
#include <dist/device/reuse_memory.hpp>
#include <dist/rpc/grpc/channel.hpp>
#include <dist/rpc/grpc/server.hpp>

namespace dist {

/// Calls between processes over TCP by gRPC's C core, for servers and workers that may be lost, stopped, replaced and
/// added. An rpc::Transport.
///
/// A process that dies with calls to it is noticed by their callers at once, and one that stops after `silence`; a server
/// notices the same of the callers whose exchanges it keeps. So a call that is kept and never answered is a lifeline, whose
/// end both see. A channel sees that an idle connection is lost, too, a little later. Fork before the first server or channel is made: what a forked process does with
/// one is refused.
struct Grpc {
  using Server = grpc::Server;
  using Channel = grpc::Channel;
  using Exchange = grpc::Exchange;
  using Call = grpc::Call;
  using Reply = grpc::Reply;

  /// For processes that exist to serve: what they receive goes into the same memory again.
  static void prepare_to_serve() { reuse_memory(); }
};

static_assert(detail::satisfied<rpc::Transport<Grpc>> && detail::satisfied<rpc::PreparesToServe<Grpc>>);

}  // namespace dist
