#pragma once

#include <dist/nn/cuda/backend.cuh>

/// What computes the layers of the examples on GPUs: cuBLAS and cuDNN.
using Backend = dist::nn::Cuda;
