#pragma once

#include <dist/nn/reference/backend.hpp>

/// Backend for the layers of the examples: the library's own loops, because oneDNN was not found.
using Backend = dist::nn::Reference;
