// expect: serve takes a transport as its template argument, such as dist::Local or dist::Grpc
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/server/serve.hpp>

int main() {
#ifdef CONTROL
  return dist::server::serve<dist::Local>(dist::SimpleResolver{{}}) ? 0 : 1;
#else
  return dist::server::serve<int>(dist::SimpleResolver{{}}) ? 0 : 1;
#endif
}
