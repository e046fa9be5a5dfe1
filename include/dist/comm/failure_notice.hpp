#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>

namespace dist {

/// What a process tells its peers, instead of coming to a collective, of why it does not come: bytes that mean the same
/// in another process. Texts that do not fit are cut.
class FailureNotice {
 public:
  /// Zeroed memory is one without a text.
  FailureNotice() = default;
  FailureNotice(std::string_view why) { store(why, why_); }
  FailureNotice(const char* why) : FailureNotice(std::string_view{why}) {}
  /// What counts of a ReplicaError is its cause, where that says something of the processes.
  FailureNotice(const std::exception& error) : FailureNotice(std::string_view{error.what()}) {
    classify(error);
    const auto* const of_replica = dynamic_cast<const ReplicaError*>(&error);
    if (of_replica == nullptr) return;
    try {
      std::rethrow_exception(of_replica->cause());
    } catch (const Error& cause) {
      classify(cause);
      if (kind_ != Kind::other) why_ = FailureNotice{std::string_view{cause.what()}}.why_;
    } catch (...) {
      // The text of the ReplicaError says it all.
    }
  }

  /// Whether the one who said it cannot go on with the others: it lost one of them, or gave up waiting.
  [[nodiscard]] bool breaks_the_group() const noexcept { return kind_ == Kind::lost || kind_ == Kind::deadline; }

  /// Throws what the failure means for those who are told of it by worker `rank`: an error of the same type where that is
  /// CollectiveMismatch, DeadlineExceeded or Unavailable, otherwise PeerError.
  [[noreturn]] void raise(std::size_t rank, std::string_view host) const {
    const std::string by = text("worker ", rank, " (host ", host, ") says: ", why_.data());
    switch (kind_) {
      case Kind::mismatch:
        throw CollectiveMismatch("The workers did not issue the same collectives", by,
                                 "Call the same collectives with the same extents in the same order on every worker");
      case Kind::deadline:
        throw DeadlineExceeded("A worker waited too long for others", by,
                               "Find out what those wait for that did not come, or give the strategy a longer timeout");
      case Kind::lost:
        throw Unavailable(static_cast<std::size_t>(lost_rank_), lost_host_.data(), by,
                          "See what that worker printed last, then start all workers again");
      case Kind::other:
        break;
    }
    throw PeerError(rank, host, why_.data());
  }

 private:
  enum class Kind : std::uint64_t { other, mismatch, deadline, lost };

  void classify(const std::exception& error) {
    if (const auto* const lost = dynamic_cast<const Unavailable*>(&error)) {
      kind_ = Kind::lost;
      lost_rank_ = lost->rank();
      store(lost->host(), lost_host_);
    } else if (dynamic_cast<const DeadlineExceeded*>(&error) != nullptr) {
      kind_ = Kind::deadline;
    } else if (dynamic_cast<const CollectiveMismatch*>(&error) != nullptr) {
      kind_ = Kind::mismatch;
    }
  }
  template <std::size_t size>
  static void store(std::string_view words, std::array<char, size>& place) noexcept {
    std::memcpy(place.data(), words.data(), std::min(words.size(), size - 1));
  }

  Kind kind_ = Kind::other;
  std::uint64_t lost_rank_ = 0;
  std::array<char, 256> lost_host_{};
  std::array<char, 1024> why_{};
};

}  // namespace dist
