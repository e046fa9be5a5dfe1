/// Kernels compiled by nvcc run as twins: host functions that the host compiler has generated from the same source.
#pragma once

#include <string>
#include <vector>

namespace fake_cuda {

class BoundKernel;

/// Binds a kernel's twin to its arguments, which are passed as in a launch.
using Twin = BoundKernel (*)(void** arguments);

/// Makes launches of the kernel `stub` of nvcc's host code run `twin`. Terminates the process if it is not a kernel.
void set_twin(const void* stub, Twin twin);

/// Returns the names of the kernels that nvcc's host code has registered.
[[nodiscard]] std::vector<std::string> registered_kernels();

}  // namespace fake_cuda
