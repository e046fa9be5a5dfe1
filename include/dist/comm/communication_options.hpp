#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// The engine for the collectives of a strategy without a fixed policy (spec H14).
enum class Implementation : unsigned char { automatic, ring, nccl };

/// Parses "AUTO", "RING" or "NCCL", ignoring case (spec H14). Throws InvalidArgument for another name.
[[nodiscard]] inline Implementation parse_implementation(std::string_view name) {
  std::string upper;
  for (const char letter : name)
    upper += static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter);
  if (upper == "AUTO") return Implementation::automatic;
  if (upper == "RING") return Implementation::ring;
  if (upper == "NCCL") return Implementation::nccl;
  throw InvalidArgument(concat(quoted(name), " is not an implementation of collectives"),
                        "the implementations are AUTO, RING and NCCL",
                        "Use one of these, or AUTO to let the library choose");
}

/// Options of collectives (spec H14). A default value means "not set". Negative sizes and wrong types do not compile
/// (spec H12).
struct CommunicationOptions {
  /// A pack of tensors is closed when it exceeds this size; 0: one pack (spec H12).
  std::size_t bytes_per_pack = 0;
  /// Maximum wait for another replica; 0: without limit (spec H13). Not set: the timeout of the strategy.
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
  /// Anything except `automatic` throws InvalidArgument in the options of a strategy, because its type names the
  /// policy.
  Implementation implementation = Implementation::automatic;

  /// Returns these options, overridden by those set in `other` (spec H15).
  [[nodiscard]] CommunicationOptions merge(const CommunicationOptions& other) const {
    CommunicationOptions merged = *this;
    if (other.bytes_per_pack != 0) merged.bytes_per_pack = other.bytes_per_pack;
    if (other.timeout) merged.timeout = other.timeout;
    if (other.implementation != Implementation::automatic) merged.implementation = other.implementation;
    return merged;
  }
};

namespace detail {

/// Calls `call` with `ops`, with the timeout of `options` (spec H13).
template <ReportsFailures Ops, class Call>
auto as_asked(const Ops& ops, [[maybe_unused]] const CommunicationOptions& options, Call&& call) {
  if constexpr (!CollectivesOfOne<Ops>)
    if (options.timeout) return call(ops.with_timeout(*options.timeout));
  return call(ops);
}

}  // namespace detail

}  // namespace dist
