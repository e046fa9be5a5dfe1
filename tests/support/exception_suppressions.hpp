/// Thread sanitizer suppressions for std::exception_ptr: the distribution's library, which counts references to
/// exceptions, is not instrumented, so the sanitizer reports the release of the last reference in another thread as a
/// race. Programs whose threads exchange exceptions include this header in one file.
#pragma once

#include "support/sanitizers.hpp"

#ifdef DIST_TEST_THREAD_SANITIZER
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
