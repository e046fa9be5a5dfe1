#pragma once

#include <string>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist {

DIST_COLD FailureNotice::FailureNotice(const std::exception& error) {
  if (const auto* const failed = dynamic_cast<const PeerError*>(&error)) {
    *this = {Kind::of_peer, failed->rank(), failed->host(), failed->thrown()};
  } else if (const auto* const lost = dynamic_cast<const Unavailable*>(&error)) {
    *this = {Kind::lost, lost->rank(), lost->host(), lost->why()};
  } else {
    const bool late = dynamic_cast<const DeadlineExceeded*>(&error) != nullptr;
    const bool differs = dynamic_cast<const CollectiveMismatch*>(&error) != nullptr;
    *this = {late ? Kind::deadline : differs ? Kind::mismatch : Kind::other, 0, "", error.what()};
  }
  const auto* const of_replica = dynamic_cast<const ReplicaError*>(&error);
  if (of_replica == nullptr) return;
  try {
    std::rethrow_exception(of_replica->cause());
  } catch (const Error& cause) {
    if (const FailureNotice of_cause{cause}; of_cause.kind_ != Kind::other) *this = of_cause;
  } catch (...) {
    // Keep the text of the ReplicaError.
  }
}

DIST_INLINE FailureNotice FailureNotice::for_good() const {
  FailureNotice last = *this;
  last.is_last_ = true;
  return last;
}

DIST_COLD void FailureNotice::raise(std::size_t rank, std::string_view host) const {
  const std::string by = concat("worker ", rank, " (host ", host, ") reports: ", why_.data());
  switch (kind_) {
    case Kind::mismatch:
      throw detail::different_calls("worker", by);
    case Kind::deadline:
      throw DeadlineExceeded("A worker waited too long for others", by,
                             "Find out what the missing workers wait for, or give the strategy a longer timeout");
    case Kind::lost:
      throw Unavailable(static_cast<std::size_t>(rank_), host_.data(), by,
                        "See what that worker printed last, then start all workers again");
    case Kind::of_peer:
      throw PeerError(static_cast<std::size_t>(rank_), host_.data(), why_.data());
    case Kind::other:
      break;
  }
  throw PeerError(rank, host, why_.data());
}

DIST_COLD FailureNotice::FailureNotice(Kind kind, std::size_t rank, std::string_view host, std::string_view why)
    : kind_(kind), rank_(rank) {
  store(host, host_);
  store(why, why_);
}

}  // namespace dist
