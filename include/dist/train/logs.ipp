#pragma once

#include <dist/core/error.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn {

DIST_INLINE void Logs::set(std::string_view name, double value) {
  for (Entry& entry : entries_)
    if (entry.name == name) {
      entry.value = value;
      return;
    }
  entries_.push_back({std::string(name), value});
}

DIST_INLINE double Logs::operator[](std::string_view name) const {
  if (const double* const value = find(name)) return *value;
  throw InvalidArgument(concat("The logs have no '", name, "'"), concat("they have: ", names()),
                        "Use one of these names, or give the model such a metric");
}

DIST_INLINE const double* Logs::find(std::string_view name) const noexcept {
  for (const Entry& entry : entries_)
    if (entry.name == name) return &entry.value;
  return nullptr;
}

DIST_INLINE std::string Logs::names() const {
  std::string names;
  for (const Entry& entry : entries_) names += concat(names.empty() ? "" : ", ", entry.name);
  return names.empty() ? "nothing" : names;
}

}  // namespace dist::nn
