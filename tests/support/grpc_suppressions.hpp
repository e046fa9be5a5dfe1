/// What the thread sanitizer does not say of gRPC: the libraries of the distribution are not compiled with it, so that it sees
/// their locks of futexes and their atomics not at all, and takes what one thread hands to another there for a race.
/// Programs that use gRPC include this once. What is suppressed is looked up all the same, which takes so long that peers are
/// lost on a busy machine; so preset tsan leaves gRPC out, and `cmake --preset tsan -DDIST_GRPC=ON` has it.
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
