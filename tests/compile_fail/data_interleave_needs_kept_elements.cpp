// expect: interleave keeps elements for several steps, but these elements are valid for one step only
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/interleave.hpp>
#include <dist/data/range.hpp>

int main() {
  auto batches = dist::data::range(8) | dist::data::batch(2);
  const auto numbers = [](const auto&) { return dist::data::range(3); };
#ifdef CONTROL
  static_cast<void>(batches | dist::data::interleave(numbers, 2));
#else
  static_cast<void>(dist::data::DistributedDataset{batches, 2} | dist::data::interleave(numbers, 2));
#endif
}
