/// Memory of the GPUs: each allocation in pages of its own, which nobody can touch but the operation that runs, if its GPU
/// reaches them. New memory holds 0xCD, not zero; the end of an allocation is as near to a guard page as alignment allows,
/// the bytes up to it are poisoned for the address sanitizer and watched without.
#pragma once

#include <cstddef>
#include <string>

namespace fake_cuda {

struct Operation;

struct Allocation {
  std::byte* first;
  std::size_t bytes;
  int device;
  bool freed;
  std::byte* pages;        // from here
  std::size_t page_bytes;  // so many, then the guard page
  Allocation* next_open;   // of those that the operation that runs has opened
  int file;                // that holds it, where kernels of all GPUs reach it; else -1
};

/// New memory of `device`, aligned to 256 bytes; null where it has not so much.
[[nodiscard]] std::byte* allocate_on(int device, std::size_t bytes);
/// The same in a file of its own, which other processes may map. It begins with a page, and kernels of all GPUs reach it.
[[nodiscard]] std::byte* allocate_in_file(int device, std::size_t bytes);
/// Maps such memory of another process, whose open file this is; it belongs to no GPU here. The file is closed with it.
[[nodiscard]] std::byte* map_file(int file, std::size_t bytes);

/// Writes memory that no operation uses.
void write_memory(void* to, const void* from, std::size_t bytes);

/// The memory that starts at `first` is given back: whoever touches it from now on is refused.
void release_memory(void* first);

/// The allocation in whose pages `address` lies, freed or not; null where it is no GPU's.
[[nodiscard]] Allocation* allocation_at(const void* address) noexcept;

/// Whether the bytes are those of one allocation that is not freed.
[[nodiscard]] bool is_device_memory(const void* first, std::size_t bytes) noexcept;

/// "memory of GPU 0, byte 12 of 400", "memory of the host".
[[nodiscard]] std::string place_of(const void* address);

/// Bytes of `device` in use, and allocations of all.
[[nodiscard]] std::size_t memory_in_use(int device) noexcept;
[[nodiscard]] std::size_t live_allocations() noexcept;

/// While one lives, `operation` runs in the calling thread, and what it touches and may touch is open.
class OpenedMemory {
 public:
  explicit OpenedMemory(const Operation& operation);
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  /// Refuses the operation if it wrote behind the end of an allocation.
  ~OpenedMemory();

 private:
  const Operation& operation_;
};

/// Forgets all memory.
void reset_device_memory();

}  // namespace fake_cuda
