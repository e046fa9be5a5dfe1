// expect: distribute_dataset splits batches: add | dist::data::batch(global_batch_size) to the dataset
#include <dist/data.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  dist::data::DistributedDataset distributed{rows | dist::data::batch(2), 2};
#else
  dist::data::DistributedDataset distributed{rows, 2};
#endif
}
