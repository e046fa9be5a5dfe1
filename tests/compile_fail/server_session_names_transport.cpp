// expect: a session takes a transport as its template argument, such as dist::Local or dist::Grpc
#include <dist/rpc/local_transport.hpp>
#include <dist/server/session.hpp>

int main() {
#ifdef CONTROL
  const dist::server::Session<dist::Local> session{{}};
#else
  const dist::server::Session<int> session{{}};
#endif
  session.check();
}
