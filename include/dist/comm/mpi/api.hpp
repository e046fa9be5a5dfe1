/// The one header that includes <mpi.h>.
#pragma once

#if !__has_include(<mpi.h>)
#error "<mpi.h> of MPI was not found: install libopenmpi-dev, and link dist::mpi (without CMake: compile with mpicxx)"
#endif

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1  // the C++ bindings that MPI-3 removed
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/exit_code.hpp>

namespace dist::mpi {

/// MPI itself refused a call or failed in it.
class MpiError : public Error {
 public:
  MpiError(std::string_view call, int code, std::string_view why);

  /// What the call returned.
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] int exit_code() const noexcept override { return ExitCode::try_again; }

 private:
  int code_;
};

namespace detail {

[[noreturn]] void refuse(int code, std::string_view call);

}  // namespace detail

/// Throws MpiError with MPI's own text when `call` did not return MPI_SUCCESS.
inline void check(int code, std::string_view call) {
  if (code != MPI_SUCCESS) [[unlikely]]
    detail::refuse(code, call);
}

}  // namespace dist::mpi

#ifndef DIST_COMPILED_MPI
#include <dist/comm/mpi/api.ipp>
#endif
