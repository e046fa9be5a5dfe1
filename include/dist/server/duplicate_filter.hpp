#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/wire.hpp>

namespace dist::server {

/// Detects repeated requests of the clients of a store, so that each change is applied once. Thread-safe.
class DuplicateFilter {
 public:
  /// The maximum number of clients. Beyond it, the least recent one is removed.
  static constexpr std::size_t most = 4096;

  /// Calls `change` unless the request is a repetition. Requests of one client are executed one at a time. Throws
  /// ArchiveError if the request has no number, and StoreError if it is older than the filter's window. If `change`
  /// throws, the request counts as not executed.
  void once(const detail::RequestHeader& envelope, dist::detail::FunctionRef<void()> change) {
    const auto nothing = [] { return std::vector<Pushed>{}; };
    const auto changed = [&] {
      change();
      return nothing();
    };
    static_cast<void>(once(envelope, changed, nothing));
  }
  /// Returns the results of `push` for its parts. For a repetition, returns the recorded results if a part was
  /// rejected, otherwise the results of `again`.
  std::vector<Pushed> once(const detail::RequestHeader& envelope, dist::detail::FunctionRef<std::vector<Pushed>()> push,
                           dist::detail::FunctionRef<std::vector<Pushed>()> again) {
    const std::uint64_t number = envelope.ordinal;
    const std::shared_ptr<Caller> caller = of(envelope);
    const std::lock_guard lock{caller->mutex};
    if (!caller->seen.remembers(number))
      throw StoreError(
          Problem::old_push, "A request is too old",
          concat("it is number ", number, " of its client, and ", rpc::NonceFilter::width, " later ones have arrived"),
          "Wait for the replies to earlier pushes");
    if (caller->seen.has(number)) {
      const auto found = caller->told.find(number);
      return found == caller->told.end() ? again() : found->second;
    }
    std::vector<Pushed> pushed = push();
    if (!std::all_of(pushed.begin(), pushed.end(), [](const Pushed& part) { return part.applied; })) {
      std::erase_if(caller->told, [&](const auto& entry) { return !caller->seen.remembers(entry.first); });
      caller->told[number] = pushed;
    }
    static_cast<void>(caller->seen.take(number));
    return pushed;
  }

 private:
  struct Caller {
    std::mutex mutex;
    rpc::NonceFilter seen;
    std::map<std::uint64_t, std::vector<Pushed>> told;  ///< by number: pushes with a rejected part
    std::uint64_t last = 0;                             ///< the value of `calls_` at its last request
  };

  [[nodiscard]] std::shared_ptr<Caller> of(const detail::RequestHeader& envelope) {
    if (envelope.client == 0 || envelope.ordinal == 0)
      throw ArchiveError("A request that changes variables has no number", "its client must number such requests",
                         "Start all processes of the job from one build of the program");
    const std::lock_guard lock{mutex_};
    std::shared_ptr<Caller>& caller = callers_[envelope.client];
    if (!caller) caller = std::make_shared<Caller>();
    caller->last = ++calls_;
    std::shared_ptr<Caller> found = caller;
    if (callers_.size() > most) {
      const auto earlier = [](const auto& a, const auto& b) { return a.second->last < b.second->last; };
      callers_.erase(std::min_element(callers_.begin(), callers_.end(), earlier));
    }
    return found;
  }

  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Caller>> callers_;
  std::uint64_t calls_ = 0;
};

}  // namespace dist::server
