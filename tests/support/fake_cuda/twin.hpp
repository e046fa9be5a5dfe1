/// Kernels that nvcc has compiled run as twins: functions of the host that the host's compiler has made of the same source.
#pragma once

#include <string>
#include <vector>

namespace fake_cuda {

class BoundKernel;

/// Binds a kernel's twin to its arguments, which it takes from where a launch has them.
using Twin = BoundKernel (*)(void** arguments);

/// Lets launches of the kernel that nvcc's host code knows by `stub` run `twin`. Refuses one that is no kernel.
void set_twin(const void* stub, Twin twin);

/// The names of the kernels that nvcc's host code has registered.
[[nodiscard]] std::vector<std::string> registered_kernels();

}  // namespace fake_cuda
