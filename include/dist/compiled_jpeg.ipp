/// The non-template code that needs only libjpeg-turbo; the CMake target dist::jpeg compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::jpeg, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/io/jpeg.ipp>
