/// Several workers in one process: threads that agree like processes.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>

namespace dist_test {

/// The posted values of a group's members, by pass and round.
class Meeting {
 public:
  explicit Meeting(std::size_t members, std::chrono::milliseconds deadline = std::chrono::seconds{30})
      : members_(members), deadline_(deadline) {}

  [[nodiscard]] std::size_t members() const { return members_; }

  void post(std::size_t pass, std::size_t round, bool holds) {
    const std::lock_guard lock{mutex_};
    Round& said = rounds_[{pass, round}];
    ++said.posts;
    if (holds) ++said.holding;
    CHECK(said.posts <= members_);
    changed_.notify_all();
  }
  void settle(std::size_t pass, std::size_t round) {
    static_cast<void>(wait(pass, round, [&](const Round& said) { return said.posts == members_; }));
  }
  [[nodiscard]] bool is_settled(std::size_t pass, std::size_t round) const {
    const std::lock_guard lock{mutex_};
    return rounds_.at({pass, round}).posts == members_;
  }
  bool any(std::size_t pass, std::size_t round) {
    const auto decided = [&](const Round& said) { return said.holding > 0 || said.posts == members_; };
    return wait(pass, round, decided).holding > 0;
  }
  /// The number of posts of all members and passes.
  [[nodiscard]] std::size_t posts() const {
    const std::lock_guard lock{mutex_};
    std::size_t sum = 0;
    for (const auto& [number, said] : rounds_) sum += said.posts;
    return sum;
  }

 private:
  struct Round {
    std::size_t posts = 0;
    std::size_t holding = 0;
  };

  template <class Decided>
  Round wait(std::size_t pass, std::size_t round, Decided decided) {
    std::unique_lock lock{mutex_};
    if (!changed_.wait_for(lock, deadline_, [&] { return decided(rounds_[{pass, round}]); }))
      throw dist::DeadlineExceeded("The workers did not agree", "one of them did not come", "Let all of them come");
    return rounds_[{pass, round}];
  }

  const std::size_t members_;
  const std::chrono::milliseconds deadline_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::size_t, std::size_t>, Round> rounds_;
};

/// One member's part in a meeting.
class MeetingAgreement {
 public:
  explicit MeetingAgreement(Meeting& meeting) : state_(std::make_shared<State>(State{&meeting})) {}

  class Pass {
   public:
    Pass(Meeting& meeting, std::size_t number) : meeting_(&meeting), number_(number) {}
    void start(bool holds) {
      wait();
      meeting_->post(number_, posts_++, holds);
    }
    void wait() {
      if (posts_ > 0) meeting_->settle(number_, posts_ - 1);
    }
    [[nodiscard]] bool is_done() const { return posts_ == 0 || meeting_->is_settled(number_, posts_ - 1); }
    bool any() { return meeting_->any(number_, posts_ - 1); }
    static void note_thrown_by_data(std::string_view) noexcept {}

   private:
    Meeting* meeting_;
    std::size_t number_;
    std::size_t posts_ = 0;
  };

  [[nodiscard]] Pass begin() const { return {*state_->meeting, state_->passes++}; }

 private:
  struct State {
    Meeting* meeting;
    std::size_t passes = 0;
  };
  std::shared_ptr<State> state_;  // shared by all copies, which belong to one worker
};

/// Returns the results of `work(worker)` on `workers` threads. Throws the first worker's exception.
template <class Work>
auto on_workers(std::size_t workers, Work work) {
  // Not a vector of results: the bits of a vector<bool> are not separate memory locations.
  struct Outcome {
    decltype(work(std::size_t{})) result{};
    std::exception_ptr error;
  };
  std::vector<Outcome> outcomes(workers);
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < workers; ++worker)
    threads.emplace_back([&work, &outcome = outcomes[worker], worker] {
      try {
        outcome.result = work(worker);
      } catch (...) {
        outcome.error = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<decltype(work(std::size_t{}))> results;
  for (Outcome& outcome : outcomes) {
    if (outcome.error) std::rethrow_exception(outcome.error);
    results.push_back(std::move(outcome.result));
  }
  return results;
}

}  // namespace dist_test
