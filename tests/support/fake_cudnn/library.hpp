/// Common parts of the fake GPU libraries.
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

/// A call in the machine, with the failures that the test has requested, as statuses of the library.
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

/// Terminates the process if the handle belongs to a GPU other than the selected one.
inline void require_chosen(std::string_view function, int device) {
  if (device != fake_cuda::chosen_device())
    refuse(std::string(function) + " of a handle of GPU " + std::to_string(device) + ", while GPU " +
           std::to_string(fake_cuda::chosen_device()) + " is chosen");
}
/// Terminates the process unless the range is in one allocation of `device` or in host memory mapped for it; `what` is
/// its name.
inline void require_memory(const std::string& what, const void* first, std::size_t bytes, int device) {
  if (fake_cuda::is_mapped_for(device, first) && fake_cuda::is_pinned(first, bytes)) return;
  if (!fake_cuda::is_device_memory(first, bytes))
    refuse(what + " is not in one allocation of a GPU: " + fake_cuda::place_of(first));
  if (const int lies_on = fake_cuda::allocation_at(first)->device; lies_on != device)
    refuse(what + " is in memory of GPU " + std::to_string(lies_on) + ", the handle is of GPU " +
           std::to_string(device));
}
/// The number of products with TF32 factors.
inline std::size_t& count_of_short_products() {
  static std::size_t count = 0;
  return count;
}
/// Returns a factor in product precision: rounded to TF32's 10 fraction bits, ties to even, if `is_short`.
[[nodiscard]] inline float as_multiplied(float factor, bool is_short) {
  if (!is_short || !std::isfinite(factor)) return factor;
  auto bits = std::bit_cast<std::uint32_t>(factor);
  constexpr std::uint32_t dropped = 13;
  bits += (std::uint32_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
  return std::bit_cast<float>(bits >> dropped << dropped);
}

/// Terminates the process unless the factors are in host memory.
inline void require_factors(const std::string& function, const float* alpha, const float* beta) {
  if (alpha == nullptr || beta == nullptr || fake_cuda::allocation_at(alpha) != nullptr ||
      fake_cuda::allocation_at(beta) != nullptr)
    refuse(function + ": alpha and beta are numbers of the host");
}

}  // namespace fake_cudnn
