/// The non-template code that needs only protozero; the CMake target dist::summary compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::summary, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/onnx/graph.ipp>
#include <dist/onnx/operators.ipp>
#include <dist/summary/value.ipp>
#include <dist/summary/writer.ipp>
#include <dist/train/callbacks/tensor_board.ipp>
