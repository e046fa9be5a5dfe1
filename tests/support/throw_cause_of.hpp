#pragma once

#include <exception>
#include <utility>

#include <dist/core/error.hpp>

namespace support {

/// Calls `fn`, and replaces a ReplicaError by its cause.
template <class Fn>
void throw_cause_of(Fn&& fn) {
  try {
    std::forward<Fn>(fn)();
  } catch (const dist::ReplicaError& error) {
    std::rethrow_exception(error.cause());
  }
}

}  // namespace support
