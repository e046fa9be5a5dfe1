/// The non-template code that needs only zlib; the CMake target dist::gzip compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::gzip, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/data/fashion_mnist.ipp>
#include <dist/io/gzip.ipp>
#include <dist/io/npz.ipp>
#include <dist/io/npz_writer.ipp>
