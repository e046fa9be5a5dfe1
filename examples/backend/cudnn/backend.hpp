#pragma once

#include <dist/nn/cudnn/backend.cuh>

/// What computes the layers of the examples on GPUs: cuBLAS and cuDNN.
using Backend = dist::nn::CuDnn;
