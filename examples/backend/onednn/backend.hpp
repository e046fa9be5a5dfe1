#pragma once

#include <dist/nn/onednn/backend.hpp>

/// Backend for the layers of the examples: oneDNN, which was found at configure time.
using Backend = dist::nn::OneDnn;
