/// Kernels that nvcc has compiled run as twins: functions of the host that the host's compiler has made of the same source.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel.hpp"

namespace fake_cuda {

/// A twin with the arguments of a launch, and the words that they hold.
struct BoundTwin {
  std::unique_ptr<const KernelCall> call;
  std::vector<std::uintptr_t> words;
};
/// Takes the arguments from where a launch has them.
using Twin = BoundTwin (*)(void** arguments);

/// Lets launches of the kernel that nvcc's host code knows by `stub` run `twin`. Refuses one that is no kernel.
void set_twin(const void* stub, Twin twin);

/// The names of the kernels that nvcc's host code has registered.
[[nodiscard]] std::vector<std::string> registered_kernels();

}  // namespace fake_cuda
