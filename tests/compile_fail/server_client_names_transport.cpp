// expect: a client of a parameter server takes a transport as its template argument, such as dist::Local or dist::Grpc
#include <dist/rpc/local_transport.hpp>
#include <dist/server/client.hpp>

int main() {
#ifdef CONTROL
  const dist::server::Client<dist::Local> client{0, {"here", "1"}};
#else
  const dist::server::Client<int> client{0, {"here", "1"}};
#endif
  return static_cast<int>(client.index());
}
