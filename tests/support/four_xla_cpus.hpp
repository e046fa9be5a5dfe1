// Gives the client of the process four XLA CPUs, for strategies of up to four replicas.
#pragma once

#include <cstdint>

#include <dist/device/pjrt/client.hpp>

namespace support {

inline const bool has_four_xla_cpus =
    (dist::pjrt::set_process_options({.values = {{"cpu_device_count", std::int64_t{4}}}}), true);

}  // namespace support
