#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include <dist/comm/collective_call.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// What a process tells its peers, instead of taking part in a collective, about the reason: bytes that mean the same
/// in another process. Texts that do not fit are cut.
class FailureNotice {
 public:
  /// Zeroed memory is a notice without a text.
  FailureNotice() = default;
  FailureNotice(std::string_view why) { store(why, why_); }
  FailureNotice(const char* why) : FailureNotice(std::string_view{why}) {}
  /// A ReplicaError counts as its cause, where that says something about the processes.
  FailureNotice(const std::exception& error) {
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
      // The text of the ReplicaError says it all.
    }
  }

  /// The same of a process that will not come to any other collective either.
  [[nodiscard]] FailureNotice for_good() const {
    FailureNotice last = *this;
    last.is_last_ = true;
    return last;
  }
  [[nodiscard]] bool is_last() const noexcept { return is_last_ || breaks_the_group(); }

  /// Whether the sender cannot go on with the others: it lost one of them, or gave up waiting.
  [[nodiscard]] bool breaks_the_group() const noexcept { return kind_ == Kind::lost || kind_ == Kind::deadline; }

  /// Throws what the failure means for the peers of worker `rank`, which sent the notice: an error of the same type
  /// where that is CollectiveMismatch, DeadlineExceeded or Unavailable, otherwise PeerError.
  [[noreturn]] void raise(std::size_t rank, std::string_view host) const {
    const std::string by = concat("worker ", rank, " (host ", host, ") says: ", why_.data());
    switch (kind_) {
      case Kind::mismatch:
        throw detail::different_calls("worker", by);
      case Kind::deadline:
        throw DeadlineExceeded("A worker waited too long for others", by,
                               "Find out what those wait for that did not come, or give the strategy a longer timeout");
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

 private:
  /// `of_peer` and `lost` are about process `rank_` on `host_`, whoever tells it.
  enum class Kind : std::uint64_t { other, of_peer, mismatch, deadline, lost };

  FailureNotice(Kind kind, std::size_t rank, std::string_view host, std::string_view why) : kind_(kind), rank_(rank) {
    store(host, host_);
    store(why, why_);
  }
  template <std::size_t size>
  static void store(std::string_view words, std::array<char, size>& place) noexcept {
    std::memcpy(place.data(), words.data(), std::min(words.size(), size - 1));
  }

  Kind kind_ = Kind::other;
  std::uint64_t is_last_ = 0;
  std::uint64_t rank_ = 0;
  std::array<char, 256> host_{};
  std::array<char, 1024> why_{};
};

}  // namespace dist
