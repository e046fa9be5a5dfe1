// expect: <grpc/grpc.h> of gRPC was not found: install libgrpc-dev, and link dist::grpc
// flags: -nostdinc
#include <dist/rpc/grpc/api.hpp>

int main() {}
