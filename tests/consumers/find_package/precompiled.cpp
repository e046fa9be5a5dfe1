// Includes nothing: dist_precompile includes <dist/dist.hpp> before the first line.
int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  return strategy.num_replicas_in_sync() == 2 ? 0 : 1;
}
