// The exception of a replica itself.
#pragma once

#include <exception>
#include <utility>

#include <dist/core/error.hpp>

namespace support {

/// Calls `fn`. Where that throws a ReplicaError, throws what the replica threw instead.
template <class Fn>
void throw_cause_of(Fn&& fn) {
  try {
    std::forward<Fn>(fn)();
  } catch (const dist::ReplicaError& error) {
    std::rethrow_exception(error.cause());
  }
}

}  // namespace support
