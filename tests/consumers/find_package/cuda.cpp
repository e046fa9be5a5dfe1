// The component cuda gives the headers of the CUDA runtime; nvcc links the runtime.
#include <cuda_runtime_api.h>

#include <dist/dist.hpp>

int main() { return CUDART_VERSION >= 12000 ? 0 : 1; }
