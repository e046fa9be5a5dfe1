#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/launcher.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The processes that an MPI launcher started: rank r is worker r, so worker 0 is the chief. They have no addresses;
/// the launcher connects them.
class LauncherResolver {
 public:
  /// Takes size and rank from the launcher's variables. No launcher, or one that does not tell the size: no cluster.
  explicit LauncherResolver(const Environment& environment = Environment{});
  /// Takes those of an MPI world that is there already. Throws InvalidArgument unless rank < size.
  LauncherResolver(std::size_t world_size, std::size_t rank);

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const noexcept;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const;

 private:
  void require_rank() const;

  Launcher launcher_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/launcher_resolver.ipp>
#endif
