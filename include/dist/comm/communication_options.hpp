#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>

namespace dist {

/// Which engine does the collectives of a strategy that leaves the choice open (spec H14).
enum class Implementation : unsigned char { automatic, ring, nccl };

/// Reads "AUTO", "RING" or "NCCL", in any case (spec H14). Throws InvalidArgument for another name.
[[nodiscard]] Implementation parse_implementation(std::string_view name);

/// How collectives are done (spec H14). A value that equals its default means that nothing was chosen. Bytes are a
/// number without sign and the implementation is an enumeration, so that negative sizes and wrong types do not compile
/// (spec H12).
struct CommunicationOptions {
  /// Several tensors travel together until they are more than so many bytes; 0 packs all of them together (spec H12).
  std::size_t bytes_per_pack = 0;
  /// The longest that a replica waits for another to come to a collective; 0 waits as long as it takes (spec H13).
  /// None: the strategy's.
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
  Implementation implementation = Implementation::automatic;

  /// These options, where `other` chose something `other`'s choice (spec H15).
  [[nodiscard]] CommunicationOptions merge(const CommunicationOptions& other) const;
};

namespace detail {

/// What `call` returns for `ops`, which wait as long as `options` say (spec H13).
template <ReportsFailures Ops, class Call>
auto as_asked(const Ops& ops, [[maybe_unused]] const CommunicationOptions& options, Call&& call) {
  if constexpr (!CollectivesOfOne<Ops>)
    if (options.timeout) return call(ops.with_timeout(*options.timeout));
  return call(ops);
}

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/communication_options.ipp>
#endif
