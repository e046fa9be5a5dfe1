/// Memory of the GPUs: each allocation has separate pages, which only the running operation can access, if its GPU can.
/// New memory holds 0xCD, not zero; the end of an allocation is as near to a guard page as alignment allows. The bytes
/// up to it are poisoned for the address sanitizer, and checked without it.
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
  std::byte* pages;
  std::size_t page_bytes;  // size without the guard page
  Allocation* next_open;   // list of allocations that the running operation has opened
  int file;                // its file, if kernels of all GPUs can access it; else -1
};

/// Allocates memory of `device`, aligned to 256 bytes; returns null if there is too little.
[[nodiscard]] std::byte* allocate_on(int device, std::size_t bytes);
/// Allocates page-aligned memory in a file, which other processes may map and kernels of all GPUs can access.
[[nodiscard]] std::byte* allocate_in_file(int device, std::size_t bytes);
/// Maps such memory of another process from its open file. It belongs to no GPU here. The file is closed with it.
[[nodiscard]] std::byte* map_file(int file, std::size_t bytes);

/// Writes to memory that no operation uses.
void write_memory(void* to, const void* from, std::size_t bytes);

/// Frees the memory that starts at `first`: later accesses terminate the process.
void release_memory(void* first);

/// Returns the allocation whose pages contain `address`, freed or not; null if it is not GPU memory.
[[nodiscard]] Allocation* allocation_at(const void* address) noexcept;

/// True if the bytes are in one allocation that is not freed.
[[nodiscard]] bool is_device_memory(const void* first, std::size_t bytes) noexcept;

/// Formats "memory of GPU 0, byte 12 of 400", "memory of the host".
[[nodiscard]] std::string place_of(const void* address);

/// The bytes of `device` in use, and the allocations of all devices.
[[nodiscard]] std::size_t memory_in_use(int device) noexcept;
[[nodiscard]] std::size_t live_allocations() noexcept;

/// Marks `operation` as running in the calling thread, and makes its memory accessible, during its lifetime.
class OpenedMemory {
 public:
  explicit OpenedMemory(const Operation& operation);
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  /// Terminates the process if the operation wrote past the end of an allocation.
  ~OpenedMemory();

 private:
  const Operation& operation_;
};

void reset_device_memory();

}  // namespace fake_cuda
