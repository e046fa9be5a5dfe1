#pragma once

#include <dist/core/config.hpp>
#include <dist/device/reuse_memory.hpp>
#include <dist/rpc/grpc/channel.hpp>
#include <dist/rpc/grpc/server.hpp>

namespace dist {

/// An rpc::Transport between processes over TCP, with gRPC's C core, for servers and workers that may fail, stop, be
/// replaced and be added.
///
/// Callers notice the exit of a server process at once, and a stopped process after `silence`; servers notice the same
/// of callers whose exchanges they keep. A call kept without a reply is therefore a lifeline for both sides. A channel
/// also detects the loss of an idle connection, slightly later. Fork before the first server or channel is created:
/// processes forked later cannot use gRPC.
struct Grpc {
  using Server = grpc::Server;
  using Channel = grpc::Channel;
  using Exchange = grpc::Exchange;
  using Call = grpc::Call;
  using Reply = grpc::Reply;

  /// Makes processes that exist to serve reuse the memory of received data.
  static void prepare_to_serve() { reuse_memory(); }
};

static_assert(detail::satisfied<rpc::Transport<Grpc>> && detail::satisfied<rpc::PreparesToServe<Grpc>>);

}  // namespace dist
