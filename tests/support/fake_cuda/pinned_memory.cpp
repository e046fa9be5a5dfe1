#include "pinned_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include "refusal.hpp"

namespace fake_cuda {
namespace {

constexpr int unset = 0xCD;

struct Pinned {
  std::size_t bytes;
  Mapped mapped;
  int device;
};
std::map<const std::byte*, Pinned> allocations;  // by the first byte

/// Returns the allocation that starts at `address` or before it.
auto before_or_at(const void* address) noexcept {
  const auto after = allocations.upper_bound(static_cast<const std::byte*>(address));
  return after == allocations.begin() ? allocations.end() : std::prev(after);
}

}  // namespace

void* allocate_pinned(std::size_t bytes, Mapped mapped, int device) {
  void* const first = std::malloc(bytes);
  std::memset(first, unset, bytes);
  allocations[static_cast<const std::byte*>(first)] = {bytes, mapped, device};
  return first;
}

void release_pinned(void* first) {
  if (allocations.erase(static_cast<const std::byte*>(first)) == 0) refuse("cudaFreeHost of what is not allocated");
  std::free(first);
}

bool is_pinned(const void* first, std::size_t bytes) noexcept {
  const auto found = before_or_at(first);
  return found != allocations.end() &&
         static_cast<const std::byte*>(first) + bytes <= found->first + found->second.bytes;
}
bool is_pinned_address(const void* address) noexcept { return is_pinned(address, 0); }
bool is_mapped_for(int device, const void* address) noexcept {
  if (!is_pinned_address(address)) return false;
  const Pinned& found = before_or_at(address)->second;
  return found.mapped == Mapped::on_all_gpus || (found.mapped == Mapped::on_one_gpu && found.device == device);
}

const void* end_of_pinned(const void* first) {
  const auto found = allocations.find(static_cast<const std::byte*>(first));
  return found == allocations.end() ? first : found->first + found->second.bytes;
}

std::size_t live_pinned_allocations() noexcept { return allocations.size(); }

void reset_pinned_memory() {
  for (const auto& [first, pinned] : allocations) std::free(const_cast<std::byte*>(first));
  allocations.clear();
}

}  // namespace fake_cuda
