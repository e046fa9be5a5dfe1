// Helpers of tests with several workers.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

#include <doctest/doctest.h>
#include <support/rank_in.hpp>
#include <support/throw_cause_of.hpp>

namespace of_workers {

inline std::size_t my_rank() { return support::rank_in(MPI_COMM_WORLD); }
inline std::size_t ranks() { return support::size_of(MPI_COMM_WORLD); }
inline bool is_last() { return my_rank() + 1 == ranks(); }
/// Synchronizes the workers independently of the library.
inline void meet() { MPI_Barrier(MPI_COMM_WORLD); }

/// Returns type and text of the exception of `fn`; for a ReplicaError, of the replica's own exception.
template <class Fn>
std::string failure(Fn&& fn) {
  try {
    support::throw_cause_of(std::forward<Fn>(fn));
  } catch (const dist::PeerError& error) {
    return dist::concat("PeerError: ", error.what());
  } catch (const dist::DeadlineExceeded& error) {
    return dist::concat("DeadlineExceeded: ", error.what());
  } catch (const dist::ShapeMismatch& error) {
    return dist::concat("ShapeMismatch: ", error.what());
  } catch (const dist::InvalidArgument& error) {
    return dist::concat("InvalidArgument: ", error.what());
  } catch (const std::exception& error) {
    return error.what();
  } catch (const int number) {
    return dist::concat("the number ", number);
  }
  return "nothing was thrown";
}

/// Returns whether the text contains `part`, and otherwise reports the text.
inline bool has(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("'" << std::string{part} << "' is not in: " << text);
  return found;
}

}  // namespace of_workers
