/// The non-template code that needs zlib and jansson; the CMake target dist::json compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::json, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/checkpoint/load_weights.ipp>
#include <dist/checkpoint/save_weights.ipp>
