#pragma once

#include <dist/nn/cuda/backend.cuh>

/// Backend for the layers of the examples on GPUs: cuBLAS and cuDNN.
using Backend = dist::nn::Cuda;
