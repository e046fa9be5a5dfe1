#pragma once

#include <string>
#include <utility>

#include <dist/data/distribute_options.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/one_replica.hpp>
#include <dist/variable/store/mirrored.hpp>

namespace dist {

/// The strategy of a program that is not distributed (spec A21): one replica, datasets pass unchanged. Code written
/// once against a strategy runs under it as if it had been written without one.
class Default : public BasicStrategy<Default, OneReplica<Cpu>, OneProcess, MirroredStore> {
 public:
  Default() : BasicStrategy(ReplicaOptions{}) {}

  [[nodiscard]] static std::string describe() { return "Default: 1 replica in the calling thread"; }

  /// The dataset itself.
  template <class Dataset>
  [[nodiscard]] static Dataset distribute_dataset(Dataset dataset, const data::InputOptions& = {}) {
    return dataset;
  }
};

}  // namespace dist
