#pragma once

#include <cstddef>
#include <string_view>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/error.hpp>

namespace dist::mpi {

DIST_INLINE_MPI MpiError::MpiError(std::string_view call, int code, std::string_view why)
    : Error(text(call, " failed"), text("MPI says: ", why, ", code ", code),
            "See what MPI printed before; what is left of the job ends, so start it again"),
      code_(code) {}

namespace detail {

DIST_INLINE_MPI void refuse(int code, std::string_view call) {
  char message[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, message, &length) != MPI_SUCCESS) length = 0;
  throw MpiError(call, code, std::string_view{message, static_cast<std::size_t>(length)});
}

}  // namespace detail

}  // namespace dist::mpi
