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

/// A thread of the library's own, which runs `work` with all signals blocked: a program's signal handlers run in its
/// own threads. Throws OutOfMemory, naming what the thread is `for_what`, when the system gives none.
template <class Work>
[[nodiscard]] std::thread start_service_thread(std::string_view for_what, Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // which the new thread inherits
  try {
    std::thread thread{[work = std::move(work)]() mutable {
      name_this_thread("dist service");
      work();
    }};
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (const std::exception& refusal) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw OutOfMemory(concat("No thread for ", for_what), refusal.what(), "Raise the limit on threads (ulimit -u)");
  }
}

}  // namespace dist::detail
