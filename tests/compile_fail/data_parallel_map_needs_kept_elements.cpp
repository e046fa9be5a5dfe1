// expect: map with NumParallelCalls keeps elements beyond the next one, these are lent for one step
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/parallel_map.hpp>
#include <dist/data/range.hpp>

int main() {
  auto batches = dist::data::range(8) | dist::data::batch(2);
  const auto map = dist::data::map([](const auto& batch) { return batch.size(); }, dist::data::NumParallelCalls{2});
#ifdef CONTROL
  static_cast<void>(batches | map);
#else
  static_cast<void>(dist::data::DistributedDataset{batches, 2} | map);
#endif
}
