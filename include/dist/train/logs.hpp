#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>

namespace dist::nn {

/// Named numbers in the order in which they were first given: "loss", then the metrics, then the same with
/// "val_" before.
class Logs {
 public:
  struct Entry {
    std::string name;
    double value;
  };

  /// Gives `name` a value, at its old place if it has one.
  void set(std::string_view name, double value) {
    for (Entry& entry : entries_)
      if (entry.name == name) {
        entry.value = value;
        return;
      }
    entries_.push_back({std::string(name), value});
  }

  /// Throws InvalidArgument, with the names there are, when there is no such entry.
  [[nodiscard]] double operator[](std::string_view name) const {
    if (const double* const value = find(name)) return *value;
    throw InvalidArgument(concat("The logs have no '", name, "'"), concat("they have: ", names()),
                          "Ask for one of those, or give the model such a metric");
  }
  /// The value of that name, until the next change; nullptr if there is none.
  [[nodiscard]] const double* find(std::string_view name) const noexcept {
    for (const Entry& entry : entries_)
      if (entry.name == name) return &entry.value;
    return nullptr;
  }
  /// "loss, accuracy", or "nothing".
  [[nodiscard]] std::string names() const {
    std::string names;
    for (const Entry& entry : entries_) names += concat(names.empty() ? "" : ", ", entry.name);
    return names.empty() ? "nothing" : names;
  }

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace dist::nn
