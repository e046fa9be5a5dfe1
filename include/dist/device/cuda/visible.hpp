#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>

namespace dist::cuda {

/// Returns CUDA_VISIBLE_DEVICES; null if it is not set.
[[nodiscard]] inline const char* visible_variable() noexcept { return std::getenv("CUDA_VISIBLE_DEVICES"); }

namespace detail {
[[nodiscard]] inline std::vector<std::string_view> entries_of(std::string_view list) {
  std::vector<std::string_view> entries;
  while (!list.empty()) {
    std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    entries.push_back(entry);
  }
  return entries;
}
}  // namespace detail

/// Describes the `count` visible GPUs, for errors. `variable` is CUDA_VISIBLE_DEVICES: the runtime numbers its entries
/// from 0, and stops at the first invalid entry: "this process sees /gpu:0 (entry '3'); CUDA_VISIBLE_DEVICES='3,x,1',
/// where CUDA can use nothing from 'x' on".
[[nodiscard]] inline std::string visible_devices(std::size_t count, const char* variable) {
  const std::vector<std::string_view> entries = detail::entries_of(variable == nullptr ? "" : variable);
  const bool has_entries = !entries.empty() && entries.size() >= count;
  constexpr std::size_t most_listed = 16;
  std::string said = count == 0 ? "this process sees no GPU" : "this process sees ";
  for (std::size_t device = 0; device < std::min(count, most_listed); ++device) {
    said += concat(device == 0 ? "" : ", ", "/gpu:", device);
    if (has_entries) said += concat(" (entry ", quoted(entries[device]), ")");
  }
  if (count > most_listed) said += concat(" and ", count - most_listed, " more");
  if (variable == nullptr) return said + "; CUDA_VISIBLE_DEVICES is not set";
  said += concat("; CUDA_VISIBLE_DEVICES=", quoted(variable));
  if (entries.size() < count) return said + ", which was changed after CUDA had read it";
  if (entries.empty()) return said + " hides all";
  if (entries.size() > count)
    said += concat(", in which CUDA ignores all entries from ", quoted(entries[count]), " on");
  return said;
}

}  // namespace dist::cuda
