#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>

#include <dist/core/type_traits.hpp>

namespace dist::cuda {

/// What messages call an operation, in two parts: "copy", or "kernel (Step, dist::IndexRange)".
struct WorkName {
  std::string_view kind, parameters;
};
inline constexpr WorkName copy_work{"copy", ""}, fill_work{"fill", ""};
/// Of a kernel with these parameters.
template <class... Parameters>
inline constexpr WorkName kernel_work = [] {
  std::string_view type = ::dist::detail::type_name<void(Parameters...)>();
  type.remove_prefix(type.find('('));
  return WorkName{"kernel ", type};
}();

namespace detail {
/// By the number of the GPU.
inline constinit std::array<std::atomic<const WorkName*>, 64> last_works{};
[[nodiscard]] inline std::atomic<const WorkName*>& last_work_of(int device) noexcept {
  return last_works[static_cast<std::size_t>(device) % last_works.size()];
}
}  // namespace detail

/// Notes what was put on a GPU, for the message when that GPU is lost. `work` lives as long as the process. Thread-safe.
inline void note_work(int device, const WorkName& work) noexcept {
  detail::last_work_of(device).store(&work, std::memory_order_relaxed);
}

/// What was put on a GPU last; null where nothing was.
[[nodiscard]] inline const WorkName* last_work(int device) noexcept {
  return detail::last_work_of(device).load(std::memory_order_relaxed);
}

namespace detail {
inline constinit std::array<std::atomic<int>, 64> late_queues{};
}  // namespace detail

/// Notes that a queue of a GPU was not done in time, or that it was, after all. Thread-safe.
inline void note_late_queue(int device, bool is_late) noexcept {
  detail::late_queues[static_cast<std::size_t>(device) % detail::late_queues.size()].fetch_add(is_late ? 1 : -1);
}
/// Whether work of a GPU does not end: who waited for it without a deadline might wait for ever.
[[nodiscard]] inline bool has_late_queue(int device) noexcept {
  return detail::late_queues[static_cast<std::size_t>(device) % detail::late_queues.size()].load() != 0;
}

}  // namespace dist::cuda
