#pragma once

#include <string>

#include <dist/comm/communication_options.hpp>
#include <dist/core/error.hpp>

namespace dist {

DIST_INLINE Implementation parse_implementation(std::string_view name) {
  std::string upper;
  for (const char letter : name)
    upper += static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter);
  if (upper == "AUTO") return Implementation::automatic;
  if (upper == "RING") return Implementation::ring;
  if (upper == "NCCL") return Implementation::nccl;
  throw InvalidArgument(concat(quoted(name), " is not an implementation of collectives"), "AUTO, RING and NCCL are",
                        "Use one of these, or AUTO to let the library choose");
}

DIST_INLINE CommunicationOptions CommunicationOptions::merge(const CommunicationOptions& other) const {
  CommunicationOptions merged = *this;
  if (other.bytes_per_pack != 0) merged.bytes_per_pack = other.bytes_per_pack;
  if (other.timeout) merged.timeout = other.timeout;
  if (other.implementation != Implementation::automatic) merged.implementation = other.implementation;
  return merged;
}

}  // namespace dist
