#pragma once

#include <string>
#include <utility>

#include <dist/core/error.hpp>

namespace support {

/// Returns the message of the error of type `E` that `fn` throws.
template <class E = dist::Error, class Fn>
std::string what_throws(Fn&& fn) {
  try {
    std::forward<Fn>(fn)();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace support
