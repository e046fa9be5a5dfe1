/// What the fakes of libraries for GPUs have in common.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "../fake_cuda/call.hpp"
#include "../fake_cuda/device_memory.hpp"
#include "../fake_cuda/handles.hpp"
#include "../fake_cuda/pinned_memory.hpp"

namespace fake_cudnn {

using fake_cuda::refuse;

/// A call in the machine, with the failures that the test asked for, as statuses of the library.
template <class Status, class Body>
Status call(std::string_view function, Status success, Status no_memory, Status not_supported, Status failed,
            Body&& body) {
  switch (fake_cuda::call(function, [&] {
    body();
    return cudaSuccess;
  })) {
    case cudaSuccess:
      return success;
    case cudaErrorMemoryAllocation:
      return no_memory;
    case cudaErrorNotSupported:
      return not_supported;
    default:
      return failed;
  }
}

/// Refuses a handle of another GPU than the one that is chosen.
inline void require_chosen(std::string_view function, int device) {
  if (device != fake_cuda::chosen_device())
    refuse(std::string(function) + " of a handle of GPU " + std::to_string(device) + ", while GPU " +
           std::to_string(fake_cuda::chosen_device()) + " is chosen");
}
/// Refuses what is not `bytes` bytes of one allocation of `device`, or of memory of the host that is mapped for it; `what`
/// is what the sentence calls it.
inline void require_memory(const std::string& what, const void* first, std::size_t bytes, int device) {
  if (fake_cuda::is_mapped_for(device, first) && fake_cuda::is_pinned(first, bytes)) return;
  if (!fake_cuda::is_device_memory(first, bytes))
    refuse(what + " is not in one allocation of a GPU: " + fake_cuda::place_of(first));
  if (const int lies_on = fake_cuda::allocation_at(first)->device; lies_on != device)
    refuse(what + " is in memory of GPU " + std::to_string(lies_on) + ", the handle is of GPU " +
           std::to_string(device));
}
/// How many products were put with factors of TF32.
inline std::size_t& count_of_short_products() {
  static std::size_t count = 0;
  return count;
}
/// A factor as it is multiplied: rounded to the 10 bits that TF32 has behind the first, to even where it is in the middle.
[[nodiscard]] inline float as_multiplied(float factor, bool is_short) {
  if (!is_short || !std::isfinite(factor)) return factor;
  auto bits = std::bit_cast<std::uint32_t>(factor);
  constexpr std::uint32_t dropped = 13;
  bits += (std::uint32_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
  return std::bit_cast<float>(bits >> dropped << dropped);
}

/// Refuses factors that are not numbers of the host.
inline void require_factors(const std::string& function, const float* alpha, const float* beta) {
  if (alpha == nullptr || beta == nullptr || fake_cuda::allocation_at(alpha) != nullptr ||
      fake_cuda::allocation_at(beta) != nullptr)
    refuse(function + ": alpha and beta are numbers of the host");
}

}  // namespace fake_cudnn
