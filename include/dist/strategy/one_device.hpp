#pragma once

#include <string>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/one_replica.hpp>
#include <dist/variable/store.hpp>

namespace dist {

/// Places everything on one device (spec A20): variables, computation and prefetched input. A way to test a distributed
/// program with one replica.
template <class DeviceType>
class OneDevice : public BasicStrategy<OneDevice<DeviceType>, OneReplica<DeviceType>, OneProcess, MirroredStore> {
 public:
  OneDevice() : OneDevice::BasicStrategy(typename OneDevice::ReplicaOptions{}) {}
  /// Uses the named device, in any form of parse_device_name: "/gpu:1". The calling thread is the replica on the host,
  /// and is not bound. Throws InvalidArgument for an invalid device.
  explicit OneDevice(std::string device) requires(!DeviceType::Space::host_accessible)
      : OneDevice::BasicStrategy({std::move(device)}) {}

  [[nodiscard]] std::string describe() const {
    return concat("OneDevice<", DeviceType::name, ">: 1 replica on ",
                  DeviceType::device_name(this->replicas_part().devices().front()));
  }

  /// Prefetches the dataset in the background (spec I15), with batches on the device. Needs <dist/data.hpp>.
  template <class Dataset>
  [[nodiscard]] auto distribute_dataset(Dataset dataset, const data::InputOptions& options = {}) const {
    if constexpr (DeviceType::Space::host_accessible)
      return data::made_ahead(std::move(dataset), options.fetch_ahead);
    else
      return data::uploaded<DeviceType>(data::made_ahead(std::move(dataset), options.fetch_ahead), this->queues(), 1,
                                        options.fetch_ahead);
  }
};

}  // namespace dist
