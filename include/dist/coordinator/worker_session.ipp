#pragma once

#include <dist/cluster/cluster_spec.hpp>
#include <dist/coordinator/worker_session.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist::detail {

[[gnu::cold]] DIST_INLINE std::size_t WorkerSession::server_at(const std::string& address) const {
  std::size_t server = 0;
  while (server < place_.servers.size() && place_.servers[server] != address) ++server;
  return server;
}
[[gnu::cold]] DIST_INLINE void WorkerSession::keep(std::uint64_t id, WorkerResource resource) {
  const std::lock_guard lock{mutex_};
  resources_.emplace(id, std::move(resource));
}
DIST_INLINE void* WorkerSession::resource(std::uint64_t id, const void* type) const {
  const std::lock_guard lock{mutex_};
  const auto found = resources_.find(id);
  if (found == resources_.end() || (found->second.value && found->second.type != type))
    throw ArchiveError("A function uses a resource that this worker does not have",
                       found == resources_.end() ? concat("no resource has the number ", id)
                                                 : concat("resource ", id, " is of another type"),
                       "Give a function resources of its coordinator only");
  if (!found->second.value) throw ResourceError(found->second.failure);
  return found->second.value.get();
}
DIST_INLINE std::shared_ptr<void> WorkerSession::variables_of(std::uint64_t id) const {
  const std::lock_guard lock{mutex_};
  const auto found = resources_.find(id);
  return found == resources_.end() ? nullptr : found->second.variables;
}
[[gnu::cold]] DIST_INLINE std::vector<net::Endpoint> WorkerSession::endpoints() const {
  std::vector<net::Endpoint> endpoints;
  for (std::size_t server = 0; server < place_.servers.size(); ++server)
    endpoints.push_back(
        endpoint_at(place_.servers[server], concat("parameter server ", server, " of the coordinator")));
  return endpoints;
}

}  // namespace dist::detail
