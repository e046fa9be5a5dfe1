#include <dist/cluster/cluster_resolver.hpp>

#include <doctest/doctest.h>

#include <string>

#include <dist/cluster/launcher.hpp>
#include <dist/cluster/slurm_resolver.hpp>

namespace {

/// The minimum that a resolver needs.
struct Archetype {
  dist::ClusterSpec cluster_spec() const { return {}; }
  std::optional<dist::Task> task() const { return std::nullopt; }
  std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  const char* describe() const { return "archetype"; }
};
struct WithoutCluster : Archetype {
  void cluster_spec() const {}
};
struct WithoutTask : Archetype {
  void task() const {}
};
struct WithoutAccelerators : Archetype {
  void num_accelerators() const {}
};
struct WithoutName : Archetype {
  void describe() const {}
};
struct NotConst : Archetype {
  std::optional<dist::Task> task() { return std::nullopt; }
};

}  // namespace

TEST_CASE("ClusterResolver requires all four functions (spec M23)") {
  CHECK(dist::ClusterResolver<Archetype>);
  CHECK_FALSE(dist::ClusterResolver<WithoutCluster>);
  CHECK_FALSE(dist::ClusterResolver<WithoutTask>);
  CHECK_FALSE(dist::ClusterResolver<WithoutAccelerators>);
  CHECK_FALSE(dist::ClusterResolver<WithoutName>);
  CHECK_FALSE(dist::ClusterResolver<NotConst>);
  CHECK_FALSE(dist::ClusterResolver<dist::ClusterSpec>);
}

TEST_CASE("the resolvers model ClusterResolver (spec M23)") {
  CHECK(dist::ClusterResolver<dist::SimpleResolver>);
  CHECK(dist::ClusterResolver<dist::SlurmResolver>);
  CHECK(dist::ClusterResolver<dist::LauncherResolver>);
  CHECK(dist::ClusterResolver<dist::UnionResolver<dist::SimpleResolver, dist::LauncherResolver>>);
}
