// The component nccl provides its header and the headers of cuda. nvcc links the libraries, which this program does
// not call.
#include <dist/comm/nccl/api.hpp>
#include <dist/device/cuda/api.hpp>

static_assert(dist::CudaError::is_fatal(cudaErrorIllegalAddress));

int main() { return dist::nccl::version_text(NCCL_VERSION_CODE).empty() ? 1 : 0; }
