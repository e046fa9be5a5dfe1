/// Checks kernel arguments for addresses that the GPU cannot access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/last_work.hpp>

namespace dist {

/// A kernel argument contains a host address that the GPU cannot access. The access would make all GPUs unusable.
class HostPointer : public Error {
 public:
  using Error::Error;
};

namespace cuda {
namespace detail {

/// Returns the name of the mapping in /proc/self/maps that holds `address`, such as "[heap]"; empty unless it is
/// writable and not a driver's. Kernels do not use functions or constants.
[[nodiscard]] inline std::string host_memory_at(std::uintptr_t address) {
  std::string place;
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return place;
  char line[512];
  while (place.empty() && std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long first = 0, end = 0;
    char allowed[5] = "";
    int name_at = 0;
    if (std::sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &first, &end, allowed, &name_at) < 3) continue;
    if (address < first || address >= end) continue;
    std::string_view name = name_at > 0 ? line + name_at : "";
    if (name.ends_with('\n')) name.remove_suffix(1);
    const bool is_of_a_driver = name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
    if (allowed[1] == 'w' && !is_of_a_driver) place = name.empty() ? "unnamed memory" : name;
    break;
  }
  std::fclose(maps);
  return place;
}

/// Throws HostPointer if `word`, at byte `offset` of an argument, is an address that `device` cannot access.
inline void require_reached(int device, const WorkName& kernel, std::size_t number, std::size_t offset,
                            std::uintptr_t word) {
  // Excludes the lowest 4 GiB, and with them 32-bit numbers, and addresses of the kernel.
  if (word < (std::uintptr_t{1} << 32) || word >= (std::uintptr_t{1} << 47)) return;
  cudaPointerAttributes attributes{};
  const cudaError_t answer = cudaPointerGetAttributes(&attributes, reinterpret_cast<const void*>(word));
  forget(answer);
  if (answer != cudaSuccess || attributes.type != cudaMemoryTypeUnregistered) return;
  const std::string place = host_memory_at(word);
  if (place.empty()) return;
  int reaches_all = 0;
  forget(cudaDeviceGetAttribute(&reaches_all, cudaDevAttrPageableMemoryAccess, device));
  if (reaches_all != 0) return;
  throw HostPointer(
      concat("A ", kernel.kind, kernel.parameters, " for GPU ", device, " contains an address of host memory in byte ",
             offset, " of argument ", number),
      concat("it is in ", place, ", which GPU ", device, " cannot access and which cudaHostRegister did not pin"),
      "Give the kernel data() of a device span, such as component(replica), or values instead of references and "
      "pointers, and set unused members to null");
}

}  // namespace detail

/// Throws HostPointer if a word of kernel argument `number`, counted from 1, is a host address that `device` cannot
/// access. Does nothing for GPUs that can access all host memory. Ignores padding: compilers that cannot clear it check
/// only types without padding and floating-point members.
template <class T>
void require_no_host_pointers(int device, const WorkName& kernel, std::size_t number, T argument) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define DIST_CLEAR_PADDING(value) __builtin_clear_padding(&value)
#endif
#endif
#ifdef DIST_CLEAR_PADDING
  constexpr bool is_seen = sizeof(T) >= sizeof(std::uintptr_t);
  if constexpr (is_seen) DIST_CLEAR_PADDING(argument);
#undef DIST_CLEAR_PADDING
#else
  constexpr bool is_seen = sizeof(T) >= sizeof(std::uintptr_t) && std::has_unique_object_representations_v<T>;
#endif
  if constexpr (is_seen) {
    for (std::size_t offset = 0; offset + sizeof(std::uintptr_t) <= sizeof argument; offset += sizeof(std::uintptr_t)) {
      std::uintptr_t word = 0;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(&argument) + offset, sizeof word);
      detail::require_reached(device, kernel, number, offset, word);
    }
  }
}

}  // namespace cuda
}  // namespace dist
