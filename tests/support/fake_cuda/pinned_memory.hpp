#pragma once

#include <cstddef>

namespace fake_cuda {

/// The GPUs whose kernels may access it. Stricter than the real runtime with unified addresses.
enum class Mapped { nowhere, on_one_gpu, on_all_gpus };

/// Allocates pinned memory for `device`.
[[nodiscard]] void* allocate_pinned(std::size_t bytes, Mapped mapped = Mapped::nowhere, int device = 0);
/// Frees pinned memory. Terminates the process if it is not allocated.
void release_pinned(void* first);

/// True if all these bytes are pinned.
[[nodiscard]] bool is_pinned(const void* first, std::size_t bytes) noexcept;
/// True if `address` is a pinned byte, or one past the last.
[[nodiscard]] bool is_pinned_address(const void* address) noexcept;
/// True if kernels of `device` may access `address`.
[[nodiscard]] bool is_mapped_for(int device, const void* address) noexcept;

[[nodiscard]] const void* end_of_pinned(const void* first);

[[nodiscard]] std::size_t live_pinned_allocations() noexcept;
void reset_pinned_memory();

}  // namespace fake_cuda
