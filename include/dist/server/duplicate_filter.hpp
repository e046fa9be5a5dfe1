#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/rpc/nonce_filter.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/wire.hpp>

namespace dist::server {

/// The clients of a store, and which of their numbered requests have come, so that what changes something is done once. Any
/// thread.
class DuplicateFilter {
 public:
  /// Clients that are remembered at the same time; then the one that was silent for longest is forgotten.
  static constexpr std::size_t most = 4096;

  /// Calls `change` unless this request of the client came before. Requests of one client are done one after another. Throws
  /// ArchiveError for a request without a number, and StoreError for one that is too old to be known; what `change` throws
  /// leaves the request undone.
  template <class Change>
  void once(const detail::RequestHeader& envelope, Change&& change) {
    const Request request{*this, envelope};
    if (request.is_repeated()) return;
    change();
    request.done();
  }
  /// The same of a push: `push` returns what became of its parts. Of a push that came before, `again` returns that, unless a
  /// part was refused: then it is told as it was.
  template <class Push, class Again>
  std::vector<Pushed> once(const detail::RequestHeader& envelope, Push&& push, Again&& again) {
    const Request request{*this, envelope};
    if (request.is_repeated()) {
      const std::vector<Pushed>* const told = request.told();
      return told == nullptr ? again() : *told;
    }
    std::vector<Pushed> pushed = push();
    if (!std::all_of(pushed.begin(), pushed.end(), [](const Pushed& part) { return part.applied; }))
      request.tell(pushed);
    request.done();
    return pushed;
  }

 private:
  /// What is known of a client.
  struct Caller {
    std::mutex mutex;
    rpc::NonceFilter seen;
    std::map<std::uint64_t, std::vector<Pushed>> told;  ///< by their numbers, pushes of which a part was refused
    std::uint64_t last = 0;                             ///< of `calls_`
  };
  /// A request of a client, while no other one of it is done.
  class Request {
   public:
    Request(DuplicateFilter& callers, const detail::RequestHeader& envelope)
        : number_(envelope.ordinal), caller_(callers.of(envelope)), lock_(caller_->mutex) {
      if (!caller_->seen.remembers(number_))
        throw StoreError(Problem::old_push, "A request is too old",
                         concat("it is number ", number_, " of its client, of which ", rpc::NonceFilter::width,
                                " later ones have come"),
                         "Wait for the replies of earlier pushes");
    }
    [[nodiscard]] bool is_repeated() const { return caller_->seen.has(number_); }
    void done() const { static_cast<void>(caller_->seen.take(number_)); }
    void tell(const std::vector<Pushed>& pushed) const {
      std::erase_if(caller_->told, [&](const auto& entry) { return !caller_->seen.remembers(entry.first); });
      caller_->told[number_] = pushed;
    }
    [[nodiscard]] const std::vector<Pushed>* told() const {
      const auto found = caller_->told.find(number_);
      return found == caller_->told.end() ? nullptr : &found->second;
    }

   private:
    const std::uint64_t number_;
    const std::shared_ptr<Caller> caller_;
    const std::lock_guard<std::mutex> lock_;
  };

  [[nodiscard]] std::shared_ptr<Caller> of(const detail::RequestHeader& envelope) {
    if (envelope.client == 0 || envelope.ordinal == 0)
      throw ArchiveError("A request that changes variables has no number", "its client must count them",
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
