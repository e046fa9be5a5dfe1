#pragma once

#include <dist/nn/reference/backend.hpp>

/// What computes the layers of the examples: the library's own loops, as this build has no oneDNN.
using Backend = dist::nn::Reference;
