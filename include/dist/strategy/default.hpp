#pragma once

#include <string>

#include <dist/data/distribute_options.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/one_replica.hpp>
#include <dist/variable/store.hpp>

namespace dist {

/// The strategy of a program that is not distributed (spec A21): one replica in the calling thread, and unchanged
/// datasets. Code behaves under it as without a strategy.
class Default : public BasicStrategy<Default, OneReplica<Cpu>, OneProcess, MirroredStore> {
 public:
  Default() : BasicStrategy(ReplicaOptions{}) {}

  [[nodiscard]] static std::string describe() { return "Default: 1 replica in the calling thread"; }

  /// Returns the dataset itself.
  template <class Dataset>
  [[nodiscard]] static Dataset distribute_dataset(Dataset dataset, const data::InputOptions& = {}) {
    return dataset;
  }
};

}  // namespace dist
