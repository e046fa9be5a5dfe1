/// The non-template code that needs only oneDNN; the CMake target dist::onednn compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::onednn, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/nn/onednn/operations.ipp>
