#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/algorithms.hpp>

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
[[nodiscard]] inline std::vector<std::size_t> processors_of_thread(pid_t id) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::vector<std::size_t> processors;
  for (std::size_t room = CPU_SETSIZE; room <= most; room *= 2) {
    ProcessorMask mask{room};
    if (sched_getaffinity(id, mask.bytes(), mask.system()) == 0) {
      for (std::size_t processor = 0; processor < mask.capacity(); ++processor)
        if (mask.has(processor)) processors.push_back(processor);
      break;
    }
    if (errno != EINVAL) break;  // EINVAL: the mask was too small
  }
  if (processors.empty()) processors.push_back(0);
  return processors;
}

}  // namespace detail

/// The processors that this process may run on, in ascending order: what a launcher or a container left it. They are
/// those of the main thread, so that a thread that was pinned sees the same; a main thread that an OpenMP runtime has
/// bound (OMP_PROC_BIND) sees its own place only.
[[nodiscard]] inline std::vector<std::size_t> allowed_processors() { return detail::processors_of_thread(getpid()); }

/// Asks that the calling thread, and the threads that it starts from now on, stay on these processors. A refusal is not
/// an error: placement is advice.
inline void bind_this_thread(std::span<const std::size_t> processors) {
  if (processors.empty()) return;
  detail::ProcessorMask mask{*std::max_element(processors.begin(), processors.end())};
  for (const std::size_t processor : processors) mask.set(processor);
  static_cast<void>(pthread_setaffinity_np(pthread_self(), mask.bytes(), mask.system()));
}
inline void pin_this_thread(std::size_t processor) { bind_this_thread({&processor, 1}); }

/// Moves the calling thread to `processor` without binding it there: where it may run is as it was afterwards, and only
/// that processor for the few microseconds in between. Nothing happens if it may not run there: then somebody decided
/// otherwise. Takes no memory.
inline void move_this_thread(std::size_t processor) noexcept {
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 8192 / bits> allowed{};  // the most that Linux supports
  std::array<unsigned long, allowed.size()> there{};
  const auto system = [](auto& mask) { return reinterpret_cast<cpu_set_t*>(mask.data()); };
  if (processor >= 8192 || sched_getaffinity(0, sizeof allowed, system(allowed)) != 0) return;
  there[processor / bits] = allowed[processor / bits] & 1UL << processor % bits;
  if (there[processor / bits] == 0 || sched_setaffinity(0, sizeof there, system(there)) != 0) return;
  static_cast<void>(sched_setaffinity(0, sizeof allowed, system(allowed)));
}

}  // namespace dist
