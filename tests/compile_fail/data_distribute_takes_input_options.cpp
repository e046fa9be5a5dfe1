// expect: distribute_dataset takes data::InputOptions: for one pipeline per replica, use
#include <dist/data.hpp>

int main() {
  auto batches = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}}) | dist::data::batch(2);
#ifdef CONTROL
  static_cast<void>(dist::data::distribute_dataset(batches, 2, dist::InputContext{1, 0, 2}, {.fetch_ahead = 2}));
#else
  static_cast<void>(
      dist::data::distribute_dataset(batches, 2, dist::InputContext{1, 0, 2}, dist::data::PipelinePerReplica{}));
#endif
}
