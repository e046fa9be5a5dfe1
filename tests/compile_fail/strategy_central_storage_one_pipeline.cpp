// expect: CentralStorage has one input pipeline for all replicas: data::PipelinePerReplica is for Mirrored
#include <dist/data/batch.hpp>
#include <dist/data/distributed_pipelines.hpp>
#include <dist/data/range.hpp>
#include <dist/strategy/central_storage.hpp>

int main() {
  const dist::CentralStorage<dist::Cpu> strategy{2};
  const auto make = [](const dist::InputContext&) { return dist::data::range(8) | dist::data::batch(2); };
#ifdef CONTROL
  static_cast<void>(strategy.distribute_datasets_from_function(make));
#else
  static_cast<void>(strategy.distribute_datasets_from_function(make, dist::data::PipelinePerReplica{}));
#endif
}
