#pragma once

#include <atomic>
#include <type_traits>
#include <utility>

namespace dist::cuda {

/// Keeps what work of a GPU may still use that does not end: for the rest of the process's life, in a list, so that nobody
/// takes it for lost. Thread-safe. Throws std::bad_alloc, which ends the program in a destructor.
template <class T>
void leave_behind(T&& used) {
  struct Kept {
    std::remove_cvref_t<T> used;
    Kept* before;
  };
  static constinit std::atomic<Kept*> last{nullptr};
  auto* const kept = new Kept{std::forward<T>(used), last.load()};
  while (!last.compare_exchange_weak(kept->before, kept)) {
  }
}

}  // namespace dist::cuda
