// expect: serve takes a resolver that lists the tasks of the job, such as dist::TfConfigResolver
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/server/serve.hpp>

int main() {
#ifdef CONTROL
  return dist::server::serve<dist::Local>(dist::SimpleResolver{{}}) ? 0 : 1;
#else
  return dist::server::serve<dist::Local>(dist::ClusterSpec{}) ? 0 : 1;
#endif
}
