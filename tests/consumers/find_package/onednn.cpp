#include <dist/dist.hpp>
#include <dist/nn/onednn/api.hpp>

int main() {
  omp_set_num_threads(1);  // dist::onednn links OpenMP; clang++ may have no header for it
  return dnnl::engine::get_count(dnnl::engine::kind::cpu) == 1 ? 0 : 1;
}
