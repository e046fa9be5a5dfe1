/// The threads of a block: one after another on one stack, until one has to wait for others.
#pragma once

#include <vector_types.h>

#include "kernel.hpp"

namespace fake_cuda {

/// Runs a grid within its operation. Terminates if the threads of a block deadlock.
void run_grid(const BoundKernel& kernel, dim3 grid, dim3 block);

}  // namespace fake_cuda
