#pragma once

#include <string>

#include <dist/device/pjrt/client.hpp>

namespace dist::pjrt {

namespace detail {

/// What the environment says: DIST_PJRT_VALUES, a list such as "cpu_device_count=4,name=value".
[[nodiscard]] ClientOptions options_of_environment();

}  // namespace detail

/// Says what the client of the process is made with, instead of the environment. Throws InvalidArgument where it has been
/// made already.
void set_process_options(ClientOptions options);

/// The client whose devices `Xla` names: one for the process, because a plugin such as libtpu serves one at a time. The
/// first call makes it, as set_process_options says, or else with the values of DIST_PJRT_VALUES, a list such as
/// "cpu_device_count=4". `plugin` is the shared library to use, unless set_process_options named one; where neither names
/// one, plugin_path finds it. On CPUs it makes the process reuse_memory(). Throws InvalidArgument where the client has
/// another plugin than `plugin`, and what Client's constructor throws; the next call then tries again.
[[nodiscard]] Client process_client(const std::string& plugin = {});

}  // namespace dist::pjrt

#ifndef DIST_COMPILED_PJRT
#include <dist/device/pjrt/process_client.ipp>
#endif
