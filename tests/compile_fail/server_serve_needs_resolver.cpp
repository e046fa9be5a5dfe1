// expect: serve is given a resolver, such as dist::TfConfigResolver, which knows the tasks of the job
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
