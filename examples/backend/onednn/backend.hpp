#pragma once

#include <dist/nn/onednn/backend.hpp>

/// What computes the layers of the examples: oneDNN, which this build found.
using Backend = dist::nn::OneDnn;
