/// Memory of the host that GPUs reach.
#pragma once

#include <cstddef>

namespace fake_cuda {

/// Of which kernels may be given addresses. The runtime of a machine with unified addresses lets them have those of all
/// pinned memory; programs that ask for what they need work on others, too.
enum class Mapped { nowhere, on_one_gpu, on_all_gpus };

/// New memory, which `device` asks for.
[[nodiscard]] void* allocate_pinned(std::size_t bytes, Mapped mapped = Mapped::nowhere, int device = 0);
/// Refuses what is not allocated.
void release_pinned(void* first);

/// Whether the bytes are pinned, all of them.
[[nodiscard]] bool is_pinned(const void* first, std::size_t bytes) noexcept;
/// Whether `address` is that of a pinned byte, or of the one after the last.
[[nodiscard]] bool is_pinned_address(const void* address) noexcept;
/// Whether it is one that kernels of `device` may be given.
[[nodiscard]] bool is_mapped_for(int device, const void* address) noexcept;

/// The end of the allocation that starts at `first`.
[[nodiscard]] const void* end_of_pinned(const void* first);

[[nodiscard]] std::size_t live_pinned_allocations() noexcept;
void reset_pinned_memory();

}  // namespace fake_cuda
