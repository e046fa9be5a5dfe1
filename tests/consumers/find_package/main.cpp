#include <dist/dist.hpp>

#include <array>

int main() {
  static_assert(std::array{DIST_VERSION_MAJOR, DIST_VERSION_MINOR, DIST_VERSION_PATCH} == std::array{PACKAGE_VERSION},
                "the headers have the version of the package");
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  auto ids = strategy.run([](auto& replica) { return replica.replica_id(); });
  return strategy.num_replicas_in_sync() == 2 && strategy.local_results(ids).size() == 2 ? 0 : 1;
}
