/// What the thread sanitizer does not say of std::exception_ptr: the library of the distribution, which counts who has an
/// exception, is not compiled with it, so that it takes the end of the last one in another thread for a race with those
/// before. Programs whose threads hand each other exceptions include this in one file: the function replaces a weak one.
#pragma once

#include "support/sanitizers.hpp"

#ifdef DIST_TEST_THREAD_SANITIZER
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
