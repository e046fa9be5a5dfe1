/// The only header that includes `<mpi.h>`.
#pragma once

#if !__has_include(<mpi.h>)
#error "<mpi.h> of MPI was not found: install libopenmpi-dev, and link dist::mpi (without CMake: compile with mpicxx)"
#endif

#ifndef OMPI_SKIP_MPICXX
/// Leaves the C++ bindings out of Open MPI's header, which make it large.
#define OMPI_SKIP_MPICXX 1  // C++ bindings, removed in MPI-3
#endif
#ifndef MPICH_SKIP_MPICXX
/// Leaves the C++ bindings out of MPICH's header.
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/trace.hpp>

namespace dist::mpi {

/// Failure of an MPI call.
class MpiError : public Error {
 public:
  /// `call` is its source text, `line` the source location.
  MpiError(std::string_view call, int code, std::string_view why, SourceLine line);

  /// The error code of MPI.
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] int exit_code() const noexcept override { return ExitCode::try_again; }

 private:
  int code_;
};

namespace detail {

[[noreturn]] void refuse(int code, std::string_view call, SourceLine line);

/// Throws MpiError if `code`, returned by `call`, is not MPI_SUCCESS.
inline void check(int code, std::string_view call, SourceLine line = here()) {
  if (code != MPI_SUCCESS) [[unlikely]]
    refuse(code, call, line);
}

}  // namespace detail

}  // namespace dist::mpi

/// Throws MpiError, with MPI's text and the source line, unless an MPI call returns MPI_SUCCESS:
/// `DIST_MPI_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE))`.
#define DIST_MPI_CALL(...) ::dist::mpi::detail::check((__VA_ARGS__), #__VA_ARGS__)

#ifndef DIST_COMPILED
#include <dist/comm/mpi/api.ipp>
#endif
