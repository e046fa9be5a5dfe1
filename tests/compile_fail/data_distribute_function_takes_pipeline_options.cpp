// expect: distribute_datasets_from_function takes data::PipelinePerWorker or data::PipelinePerReplica
#include <dist/data/batch.hpp>
#include <dist/data/distributed_pipelines.hpp>
#include <dist/data/tensor_slices.hpp>

int main() {
  const auto batches = [](const dist::InputContext&) {
    return dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}}) | dist::data::batch(2);
  };
  const dist::InputContext context{1, 0, 2};
#ifdef CONTROL
  const dist::data::PipelinePerReplica options{.fetch_ahead = 2};
#else
  const dist::data::InputOptions options{.fetch_ahead = 2};
#endif
  static_cast<void>(dist::data::distribute_datasets_from_function(batches, 2, context, options));
}
