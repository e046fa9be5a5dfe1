#pragma once

#include <pthread.h>
#include <sched.h>

#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/config.hpp>

namespace dist {

namespace detail {

/// A set of processors in the system's form, of any size: machines may have more than a cpu_set_t has room for.
class ProcessorMask {
 public:
  explicit ProcessorMask(std::size_t processors) : words_(processors / bits + 1) {}

  void set(std::size_t processor) { words_[processor / bits] |= 1UL << processor % bits; }
  [[nodiscard]] bool has(std::size_t processor) const {
    return (words_[processor / bits] >> processor % bits & 1) != 0;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return words_.size() * bits; }
  [[nodiscard]] std::size_t bytes() const noexcept { return words_.size() * sizeof(unsigned long); }
  [[nodiscard]] cpu_set_t* system() noexcept { return reinterpret_cast<cpu_set_t*>(words_.data()); }

 private:
  static constexpr std::size_t bits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> words_;
};

/// The processors that thread `id` may run on, in ascending order; 0 is the calling thread.
[[nodiscard]] std::vector<std::size_t> processors_of_thread(int id);

}  // namespace detail

/// The processors that this process may run on, in ascending order: what a launcher or a container left it. They are
/// those of the main thread, so that a thread that was pinned sees the same; a main thread that an OpenMP runtime has
/// bound (OMP_PROC_BIND) sees its own place only.
[[nodiscard]] std::vector<std::size_t> allowed_processors();

/// Asks that the calling thread, and the threads that it starts from now on, stay on these processors. A refusal is not
/// an error: placement is advice.
void bind_this_thread(std::span<const std::size_t> processors);
void pin_this_thread(std::size_t processor);

/// Binds the calling thread to these processors. The destructor gives the thread the processors that it had before, if it is
/// called in that thread and the thread is still bound as here.
class ThreadBinding {
 public:
  explicit ThreadBinding(std::span<const std::size_t> processors);
  ThreadBinding(const ThreadBinding&) = delete;
  ThreadBinding& operator=(const ThreadBinding&) = delete;
  ~ThreadBinding();

 private:
  pthread_t thread_;
  std::vector<std::size_t> before_;
  std::vector<std::size_t> bound_;
};

/// Moves the calling thread to `processor` without binding it there: where it may run is as it was afterwards, and only
/// that processor for the few microseconds in between. Nothing happens if it may not run there: then somebody decided
/// otherwise. Takes no memory.
void move_this_thread(std::size_t processor) noexcept;

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/affinity.ipp>
#endif
