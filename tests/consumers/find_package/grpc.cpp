#include <dist/rpc/grpc/transport.hpp>

int main() {
  const dist::net::Endpoint nobody{"127.0.0.1", "1"};
  dist::Grpc::Channel channel{nobody, dist::rpc::ChannelOptions{}};
  try {
    channel.call("echo", {}, {.timeout = std::chrono::seconds{5}});
  } catch (const dist::RpcError&) {
    return 0;
  }
  return 1;
}
