#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/config.hpp>

namespace dist::nn {

/// Named numbers in insertion order: "loss", then the metrics, then the same with prefix "val_".
class Logs {
 public:
  /// A name and its value.
  struct Entry {
    /// Such as "loss" or "val_accuracy".
    std::string name;
    /// The mean over the examples up to now, unless a callback added the value.
    double value;
  };

  /// Sets the value of `name`. An existing name keeps its position.
  void set(std::string_view name, double value);

  /// Returns the value of `name`. Throws InvalidArgument, listing the names, if it does not exist.
  [[nodiscard]] double operator[](std::string_view name) const;
  /// Returns the value of `name`, valid until the next change, or nullptr.
  [[nodiscard]] const double* find(std::string_view name) const noexcept;
  /// Returns "loss, accuracy", or "nothing".
  [[nodiscard]] std::string names() const;

  /// The number of names.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// The first entry, in insertion order.
  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  /// The end of the entries.
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/train/logs.ipp>
#endif
