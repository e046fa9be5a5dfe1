#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <dist/core/algorithms.hpp>
#include <dist/device/affinity.hpp>

namespace dist {

namespace detail {

DIST_INLINE std::vector<std::size_t> processors_of_thread(int id) {
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

DIST_INLINE std::vector<std::size_t> allowed_processors() { return detail::processors_of_thread(getpid()); }

DIST_INLINE void bind_this_thread(std::span<const std::size_t> processors) {
  if (processors.empty()) return;
  detail::ProcessorMask mask{*std::max_element(processors.begin(), processors.end())};
  for (const std::size_t processor : processors) mask.set(processor);
  static_cast<void>(pthread_setaffinity_np(pthread_self(), mask.bytes(), mask.system()));
}

DIST_INLINE void pin_this_thread(std::size_t processor) { bind_this_thread({&processor, 1}); }

DIST_INLINE ThreadBinding::ThreadBinding(std::span<const std::size_t> processors)
    : thread_(pthread_self()), before_(detail::processors_of_thread(0)) {
  bind_this_thread(processors);
  bound_ = detail::processors_of_thread(0);
}
DIST_INLINE ThreadBinding::~ThreadBinding() {
  if (pthread_equal(thread_, pthread_self()) != 0 && detail::processors_of_thread(0) == bound_)
    bind_this_thread(before_);
}

DIST_INLINE void move_this_thread(std::size_t processor) noexcept {
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
