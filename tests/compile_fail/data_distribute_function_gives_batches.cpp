// expect: the function must take a dist::InputContext and return a dataset of batches
#include <dist/data/batch.hpp>
#include <dist/data/distributed_pipelines.hpp>
#include <dist/data/tensor_slices.hpp>

int main() {
  const auto rows = [](const dist::InputContext&) {
    return dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
  };
#ifdef CONTROL
  const auto batches = [&](const dist::InputContext& context) {
    return rows(context) | dist::data::batch(context.get_per_replica_batch_size(4));
  };
  static_cast<void>(dist::data::distribute_datasets_from_function(batches, 2, dist::InputContext{1, 0, 2}));
#else
  static_cast<void>(dist::data::distribute_datasets_from_function(rows, 2, dist::InputContext{1, 0, 2}));
#endif
}
