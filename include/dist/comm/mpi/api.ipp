#pragma once

#include <cstddef>

#include <dist/comm/mpi/api.hpp>

namespace dist::mpi {

DIST_INLINE MpiError::MpiError(std::string_view call, int code, std::string_view why, SourceLine line)
    : Error(concat(call.substr(0, call.find('(')), " failed"),
            concat("MPI reports: ", why, ", code ", code, ", at ", line.file, ":", line.line),
            "See what MPI printed before; the rest of the job ends, so start it again"),
      code_(code) {}

namespace detail {

DIST_INLINE void refuse(int code, std::string_view call, SourceLine line) {
  char message[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, message, &length) != MPI_SUCCESS) length = 0;
  throw MpiError(call, code, std::string_view{message, static_cast<std::size_t>(length)}, line);
}

}  // namespace detail

}  // namespace dist::mpi
