#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace dist::nn {

/// A layer's plans by batch size. Training uses two or three sizes, the full batch and the last partial ones. At most
/// eight plans are kept: the oldest is dropped.
template <class Plan>
class Plans {
 public:
  /// Returns the plan for batches of `rows`, made by `make()` if missing.
  template <class Make>
  [[nodiscard]] Plan& for_rows(std::size_t rows, Make&& make) {
    for (Entry& entry : entries_)
      if (entry.plan && entry.rows == rows) return *entry.plan;
    Entry& oldest = entries_[next_];
    oldest.plan.reset();
    oldest.plan.emplace(make());
    oldest.rows = rows;
    next_ = (next_ + 1) % entries_.size();
    return *oldest.plan;
  }

 private:
  struct Entry {
    std::size_t rows = 0;
    std::optional<Plan> plan;
  };
  std::array<Entry, 8> entries_;
  std::size_t next_ = 0;
};

}  // namespace dist::nn
