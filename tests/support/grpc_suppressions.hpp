/// Thread sanitizer suppressions for gRPC: the distribution's libraries are not instrumented, so data passed between
/// threads looks like a race. Programs that use gRPC include this once. Suppressed reports are still expensive, and
/// peers time out on a busy machine; therefore preset tsan disables gRPC, and `cmake --preset tsan -DDIST_GRPC=ON`
/// enables it.
#pragma once

#include "support/sanitizers.hpp"

#ifdef DIST_TEST_THREAD_SANITIZER
extern "C" inline __attribute__((used)) const char* __tsan_default_suppressions() {
  return "race:libgrpc.so\n"
         "race:libgpr.so\n"
         "race:libabsl_\n"
         "race:libupb.so\n"
         "mutex:libgrpc.so\n"
         "deadlock:libgrpc.so\n";
}
#endif
