/// Memory of the host that GPUs reach.
#pragma once

#include <cstddef>

namespace fake_cuda {

[[nodiscard]] void* allocate_pinned(std::size_t bytes);
/// Refuses what is not allocated.
void release_pinned(void* first);

/// Whether the bytes are pinned, all of them.
[[nodiscard]] bool is_pinned(const void* first, std::size_t bytes) noexcept;
/// Whether `address` is that of a pinned byte, or of the one after the last.
[[nodiscard]] bool is_pinned_address(const void* address) noexcept;

/// The end of the allocation that starts at `first`.
[[nodiscard]] const void* end_of_pinned(const void* first);

[[nodiscard]] std::size_t live_pinned_allocations() noexcept;
void reset_pinned_memory();

}  // namespace fake_cuda
