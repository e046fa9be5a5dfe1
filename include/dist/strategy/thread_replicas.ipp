#pragma once

#include <dist/core/error.hpp>
#include <dist/strategy/thread_replicas.hpp>

namespace dist::detail {

DIST_COLD void require_replica_for_each(std::size_t devices, const MirroredOptions& options) {
  if (options.replicas && *options.replicas != devices)
    throw InvalidArgument("A strategy was given devices and a different number of replicas",
                          concat(devices, " devices, ", *options.replicas, " replicas"),
                          "Give one of the two: each device takes one replica");
}

DIST_COLD void warn_of_shared_devices(std::size_t replicas, std::size_t devices, std::string_view type) {
  if (shared_devices.was_given()) return;
  shared_devices.emit(concat(replicas, " replicas share ", devices, devices == 1 ? " device" : " devices", " (", type,
                             "), which makes each of them slower. Leave the number out for one replica on ",
                             "each device. DIST_WARNINGS=0 silences this."));
}

DIST_INLINE const CommunicationOptions& checked(const CommunicationOptions& options) {
  if (options.implementation != Implementation::automatic)
    throw InvalidArgument("The options of a strategy select an implementation of collectives",
                          "the type of the strategy selects it",
                          "Name the implementation in the type, as in Mirrored<RingAllReduce>");
  return options;
}

}  // namespace dist::detail
