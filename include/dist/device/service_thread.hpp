#pragma once

#include <pthread.h>
#include <signal.h>

#include <exception>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>

namespace dist::detail {

/// Starts a thread of the library with all signals blocked, so that signal handlers run in the program's threads.
/// Throws OutOfMemory with the purpose `for_what` if the system cannot create a thread.
template <class Work>
[[nodiscard]] std::thread start_service_thread(std::string_view for_what, Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  try {
    std::thread thread{[work = std::move(work)]() mutable {
      name_this_thread("dist service");
      work();
    }};
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (const std::exception& refusal) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw OutOfMemory(concat("Could not start a thread for ", for_what), refusal.what(),
                      "Raise the limit on threads (ulimit -u)");
  }
}

}  // namespace dist::detail
