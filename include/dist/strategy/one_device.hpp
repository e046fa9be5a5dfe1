#pragma once

#include <string>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/one_replica.hpp>
#include <dist/variable/store/mirrored.hpp>

namespace dist {

/// Everything on one device (spec A20): variables, computation and prefetched input. The first step away from Default,
/// and the way to try a distributed program with one replica.
template <class DeviceType>
class OneDevice : public BasicStrategy<OneDevice<DeviceType>, OneReplica<DeviceType>, OneProcess, MirroredStore> {
 public:
  OneDevice() : OneDevice::BasicStrategy(typename OneDevice::ReplicaOptions{}) {}
  /// On the device with this name, in any form that parse_device_name reads: "/gpu:1". The caller is a replica on the
  /// host, which stays where it is. Throws InvalidArgument for a device that cannot be.
  explicit OneDevice(std::string device) requires(!DeviceType::Space::host_accessible)
      : OneDevice::BasicStrategy({std::move(device)}) {}

  [[nodiscard]] std::string describe() const {
    return concat("OneDevice<", DeviceType::name, ">: 1 replica on ",
                  DeviceType::device_name(this->replicas_part().devices().front()));
  }

  /// The dataset, with the next elements made ready in the background (spec I15), and its batches on the device. Needs
  /// <dist/data.hpp>.
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
