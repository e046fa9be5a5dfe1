#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>

#include <dist/core/type_traits.hpp>

namespace dist::cuda {

/// The name of an operation in messages, in two parts: "copy", or "kernel (Step, dist::IndexRange)".
struct WorkName {
  std::string_view kind,  ///< "copy", "fill" or "kernel"
      parameters;         ///< types of a kernel's arguments in parentheses; empty for other operations
};
/// The name of copies.
inline constexpr WorkName copy_work{"copy", ""};
/// The name of fills.
inline constexpr WorkName fill_work{"fill", ""};
/// The name of a kernel with these parameters.
template <class... Parameters>
inline constexpr WorkName kernel_work = [] {
  std::string_view type = ::dist::detail::type_name<void(Parameters...)>();
  type.remove_prefix(type.find('('));
  return WorkName{"kernel ", type};
}();

namespace detail {
inline constinit std::array<std::atomic<const WorkName*>, 64> last_works{};
[[nodiscard]] inline std::atomic<const WorkName*>& last_work_of(int device) noexcept {
  return last_works[static_cast<std::size_t>(device) % last_works.size()];
}
}  // namespace detail

/// Records the last work submitted to a GPU, for the message when the GPU is lost. `work` must have static storage
/// duration. Thread-safe.
inline void note_work(int device, const WorkName& work) noexcept {
  detail::last_work_of(device).store(&work, std::memory_order_relaxed);
}

/// Returns the last work submitted to a GPU; null if there was none.
[[nodiscard]] inline const WorkName* last_work(int device) noexcept {
  return detail::last_work_of(device).load(std::memory_order_relaxed);
}

namespace detail {
inline constinit std::array<std::atomic<int>, 64> late_queues{};
}  // namespace detail

/// Records that work on a queue of the GPU missed its deadline, or that it completed after all. Thread-safe.
inline void note_late_queue(int device, bool is_late) noexcept {
  detail::late_queues[static_cast<std::size_t>(device) % detail::late_queues.size()].fetch_add(is_late ? 1 : -1);
}
/// True if a queue of the GPU has missed its deadline: a wait without a deadline might never return.
[[nodiscard]] inline bool has_late_queue(int device) noexcept {
  return detail::late_queues[static_cast<std::size_t>(device) % detail::late_queues.size()].load() != 0;
}

}  // namespace dist::cuda
