/// The non-template code that needs only PJRT's header; the CMake target dist::pjrt compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::pjrt, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/device/pjrt/buffer.ipp>
#include <dist/device/pjrt/client.ipp>
#include <dist/device/pjrt/executable.ipp>
#include <dist/device/pjrt/managed_memory.ipp>
#include <dist/hlo/compile_cache.ipp>
#include <dist/strategy/trace_context.ipp>
