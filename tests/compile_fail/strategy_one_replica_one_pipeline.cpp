// expect: a strategy of one replica has one input pipeline: data::PipelinePerReplica is for Mirrored
// (spec A20, I18)
#include <dist/data/batch.hpp>
#include <dist/data/distributed_pipelines.hpp>
#include <dist/data/range.hpp>
#include <dist/strategy/one_device.hpp>

int main() {
  const auto make = [](const dist::InputContext&) { return dist::data::range(8) | dist::data::batch(2); };
#ifdef CONTROL
  static_cast<void>(dist::OneDevice<dist::Cpu>{}.distribute_datasets_from_function(make));
#else
  static_cast<void>(
      dist::OneDevice<dist::Cpu>{}.distribute_datasets_from_function(make, dist::data::PipelinePerReplica{}));
#endif
}
