// The component cuda provides the headers. nvcc links the runtime, which this program does not call.
#include <dist/device/cuda/api.hpp>

static_assert(dist::CudaError::is_fatal(cudaErrorIllegalAddress));

int main() { return CUDART_VERSION >= 12000 ? 0 : 1; }
