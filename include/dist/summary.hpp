/// Event files for TensorBoard: scalars, histograms, images, text, the model's graph and hyperparameters. Needs
/// protozero.
#pragma once

#include <dist/core/config.hpp>  // first: checks the compiler

#include <dist/core/error.hpp>  // the errors that callers catch
#include <dist/summary/writer.hpp>
