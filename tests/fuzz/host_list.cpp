// Parses any bytes as Slurm's shorthands: hosts and counts within the limits, or a dist::Error.
#include <dist/cluster/slurm_resolver.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <dist/core/error.hpp>

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void expand_hosts(const std::string& list) {
  const std::vector<std::string> hosts = dist::expand_host_list(list);
  require(hosts.empty() == list.empty() && hosts.size() <= dist::host_list_max_hosts);
  std::string joined;
  for (const std::string& host : hosts) {
    require(!host.empty() && host.size() <= dist::host_list_max_name);
    require(host.find_first_of(",[]") == std::string::npos);
    joined += (joined.empty() ? "" : ",") + host;
  }
  require(dist::expand_host_list(joined) == hosts);
}

void expand_counts(const std::string& list) {
  const std::vector<std::size_t> counts = dist::expand_tasks_per_node(list);
  require(counts.empty() == list.empty() && counts.size() <= dist::host_list_max_hosts);
  std::string joined;
  for (const std::size_t count : counts) {
    require(count > 0 && count <= dist::host_list_max_hosts);
    joined += (joined.empty() ? "" : ",") + std::to_string(count);
  }
  require(dist::expand_tasks_per_node(joined) == counts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string list(data, data + size);
  for (const auto expand : {expand_hosts, expand_counts}) {
    try {
      expand(list);
    } catch (const dist::Error&) {
    }
  }
  return 0;
}
