/// Which program a process runs: what addresses of functions in it mean to another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <dist/core/config.hpp>

namespace dist {

/// The identity of the program that this process runs, which another build does not have: the build id that the linker has
/// written (NT_GNU_BUILD_ID), in hexadecimal digits, or without one a checksum of the file. Shared libraries have their
/// own and do not count. Throws FileError where there is no build id and the file cannot be read.
[[nodiscard]] const std::string& binary_identity();

/// A place in a program or a shared library that is the same in every process that loads it, wherever that is.
struct FunctionId {
  std::uint64_t module = 0;  ///< a checksum of the identity of the program or library
  std::uint64_t offset = 0;  ///< from where it was loaded

  friend constexpr auto operator<=>(const FunctionId&, const FunctionId&) = default;
  friend constexpr bool operator==(const FunctionId&, const FunctionId&) = default;  // see Task
};

namespace detail {

/// The place of an address in one of the modules of this process. Throws InvalidArgument for one that is in none, as of
/// code that was made at run time, and what binary_identity throws.
[[nodiscard]] FunctionId code_place_of(std::uintptr_t address);

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/server/binary.ipp>
#endif
