/// The parts of the library that are no templates and need the header of PJRT, and no other package. A program compiles this
/// once, in a source file that includes nothing else, and all its sources define DIST_COMPILED_PJRT. In CMake, linking
/// dist::compiled_pjrt does both.
#pragma once

#ifndef DIST_COMPILED_PJRT
#error "define DIST_COMPILED_PJRT for all sources of the program, or in CMake link dist::compiled_pjrt, which does"
#include <dist_compiled>  // there is none, and only a missing header ends a compilation
#endif

#include <dist/device/pjrt/buffer.ipp>
#include <dist/device/pjrt/client.ipp>
#include <dist/device/pjrt/executable.ipp>
#include <dist/device/pjrt/managed_memory.ipp>
#include <dist/hlo/compile_cache.ipp>
#include <dist/strategy/traced_variable.ipp>
