/// Finds code that names MPI although it should work with any network.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gates/probes.hpp"

namespace gates {

/// True if a header may name MPI: in the two MPI folders, and in the files that compile them.
inline bool may_name_mpi(std::string_view header) {
  return header.starts_with("comm/mpi/") || header.starts_with("cluster/mpi/") || header == "compiled_mpi.ipp" ||
         header == "compiled_crypto_pmix_mpi.ipp";
}

/// Returns one message per MPI constant, function, type or header that a header outside the MPI folders names. Comments
/// and string literals are allowed, and so is the default network MpiNetwork in `strategy/multi_worker.hpp`, and
/// includes of `multi_worker.hpp`.
inline std::vector<std::string> names_of_mpi(const std::map<std::string, std::string>& headers) {
  std::vector<std::string> found;
  for (const auto& [header, text] : headers) {
    if (may_name_mpi(header)) continue;
    const std::string code = code_of(text);
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    for (std::size_t at = 0; at < code.size();) {
      if (!is_part(code[at])) {
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < code.size() && is_part(code[end])) ++end;
      const std::string name = code.substr(at, end - at);
      const bool is_include = code.compare(code.rfind('\n', at) + 1, 8, "#include") == 0;
      const bool is_network = header == "strategy/multi_worker.hpp" && (name == "MpiNetwork" || is_include);
      const bool is_door = header == "multi_worker.hpp" && is_include;
      if ((name.starts_with("MPI_") || name.starts_with("Mpi") || name == "mpi") && !is_network && !is_door)
        found.push_back(
            header + ":" +
            std::to_string(1 + std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
            " names " + name + ", which belongs into comm/mpi or cluster/mpi");
      at = end;
    }
  }
  return found;
}

}  // namespace gates
