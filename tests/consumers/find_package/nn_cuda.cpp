// The component nn_cuda provides its headers and the headers of cuda. nvcc links the libraries, which this program
// does not call.
#include <dist/device/cuda/api.hpp>
#include <dist/nn/cuda/api.hpp>

static_assert(dist::CudaError::is_fatal(cudaErrorIllegalAddress));

int main() { return CUBLAS_VERSION >= 120000 ? 0 : 1; }
