#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/data/agreement.hpp>

namespace dist {

/// How the processes of a MultiWorker agree on the end of their data: through their network, or not at all where there is
/// one process. A data::Agreement.
template <data::Agreement WorkerCollectives>
class WorkerAgreement {
 public:
  class Pass {
   public:
    Pass() = default;
    explicit Pass(typename WorkerCollectives::Pass between) : between_(std::move(between)) {}

    void start(bool holds) {
      if (between_)
        between_->start(holds);
      else
        alone_.start(holds);
    }
    void wait() {
      if (between_) between_->wait();
    }
    [[nodiscard]] bool is_done() const { return !between_ || between_->is_done(); }
    void note_thrown_by_data(std::string_view what) {
      if (between_) between_->note_thrown_by_data(what);
    }
    [[nodiscard]] bool any() { return between_ ? between_->any() : alone_.any(); }

   private:
    std::optional<typename WorkerCollectives::Pass> between_;
    data::NoAgreement::Pass alone_;
  };

  /// For a single process.
  WorkerAgreement() = default;
  explicit WorkerAgreement(WorkerCollectives between) : between_(std::move(between)) {}

  [[nodiscard]] Pass begin() const { return between_ ? Pass{between_->begin()} : Pass{}; }
  /// Tells the other processes that this one will not begin the next pass, and why.
  void cancel(std::string_view why) const noexcept {
    if (between_) between_->cancel(why);
  }
  /// What the data of this process threw, where that ended the last pass; else empty.
  [[nodiscard]] std::string thrown_by_data() const { return between_ ? between_->thrown_by_data() : std::string{}; }

 private:
  std::optional<WorkerCollectives> between_;
};

}  // namespace dist
