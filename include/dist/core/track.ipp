#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/core/track.hpp>

namespace dist::detail {

DIST_INLINE std::size_t WalkPath::begin(std::string_view name) {
  const std::size_t length = key_.size();
  if (length > 0) key_ += '/';
  key_ += name;
  return length;
}

DIST_INLINE std::string_view WalkPath::leaf() {
  if (std::find(keys_.begin(), keys_.end(), key_) != keys_.end())
    throw InvalidArgument(concat("Two tracked parts are named '", key_, "'"), "one would replace the other",
                          "Give one of them another name");
  return keys_.emplace_back(key_);
}

}  // namespace dist::detail
