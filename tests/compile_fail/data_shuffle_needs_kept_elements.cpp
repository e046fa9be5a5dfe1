// expect: shuffle keeps elements for several steps, but these elements are valid for one step only
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/range.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>

int main() {
  auto batches = dist::data::range(8) | dist::data::batch(2);
#ifdef CONTROL
  static_cast<void>(batches | dist::data::shuffle(2));
#else
  static_cast<void>(dist::data::DistributedDataset{batches, 2} | dist::data::take(2) | dist::data::shuffle(2));
#endif
}
