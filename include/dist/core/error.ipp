#pragma once

#include <utility>

#include <dist/core/error.hpp>

namespace dist {

DIST_COLD Error::Error(std::string_view problem, std::string_view why, std::string_view suggestion)
    : std::runtime_error(
          concat(shown(problem), " (", shown(why), "). ", shown(suggestion), suggestion.ends_with('.') ? "" : ".")) {}

DIST_COLD std::string Error::shown(std::string_view part) { return printable(part, 4000, "\n\t"); }
DIST_INLINE int Error::exit_code() const noexcept { return ExitCode::must_change; }
DIST_INLINE int DeadlineExceeded::exit_code() const noexcept { return ExitCode::try_again; }
DIST_INLINE int Unavailable::exit_code() const noexcept { return ExitCode::try_again; }
DIST_INLINE int PeerError::exit_code() const noexcept { return ExitCode::try_again; }
DIST_INLINE int OutOfMemory::exit_code() const noexcept { return ExitCode::try_again; }
DIST_INLINE int ReplicaError::exit_code() const noexcept {
  try {
    if (cause_) std::rethrow_exception(cause_);
  } catch (const Error& error) {
    return error.exit_code();
  } catch (...) {  // not an exception of the library
  }
  return ExitCode::failure;
}

DIST_COLD FileError::FileError(std::string_view path, std::string_view problem, std::string_view why,
                               std::string_view suggestion)
    : Error(concat("File '", path, "' ", problem), why, suggestion), path_(path) {}

DIST_COLD Unavailable::Unavailable(std::size_t rank, std::string_view host, std::string_view why,
                                   std::string_view suggestion)
    : Unavailable(concat("Worker ", rank, " on host ", host, " is gone"), rank, host, why, suggestion) {}
DIST_COLD Unavailable::Unavailable(std::string_view problem, std::size_t rank, std::string_view host,
                                   std::string_view why, std::string_view suggestion)
    : Error(problem, why, suggestion), rank_(rank), host_(host), why_(why) {}

DIST_COLD PeerError::PeerError(std::size_t rank, std::string_view host, std::string_view what)
    : Error(concat("Worker ", rank, " on host ", host, " failed"),
            "it reported the failure to the other workers instead of taking part in a collective",
            concat("It threw: ", what)),
      rank_(rank),
      host_(host),
      thrown_(what) {}

DIST_COLD ReplicaError::ReplicaError(std::size_t replica, std::size_t replicas, std::string_view what,
                                     std::exception_ptr cause)
    : Error(concat("Replica ", replica, " failed in its replica function"), concat("one of ", replicas, " replicas"),
            concat("It threw: ", what)),
      replica_(replica),
      cause_(std::move(cause)) {}

DIST_INLINE int exit_code(const std::exception& error) noexcept {
  const auto* const own = dynamic_cast<const Error*>(&error);
  return own == nullptr ? ExitCode::failure : own->exit_code();
}

}  // namespace dist
