/// Event files for TensorBoard: scalars, histograms, images, text, the model's graph, hyperparameters. Needs protozero.
#pragma once

#include <dist/core/config.hpp>  // first: says what a compiler must be

#include <dist/core/error.hpp>  // what callers catch
#include <dist/summary/writer.hpp>
