#pragma once

#include <string>

#include <dist/device/pjrt/api.hpp>

namespace dist::pjrt {

/// The shared library of the plugin to use: `chosen`; where that is empty, what DIST_PJRT_PLUGIN or TPU_LIBRARY_PATH name;
/// and otherwise what the active Python environment (VIRTUAL_ENV) has, libtpu before the one plugin in xla_plugins. Throws
/// NoPlugin where there is none, or several of which nobody says which.
[[nodiscard]] std::string plugin_path(const std::string& chosen = {});

/// The plugin in the shared library at `path`, loaded and initialised by the first call for it. It stays loaded until the
/// process ends. Throws NoPlugin, and PjrtError where it cannot be initialised.
[[nodiscard]] const Api& load_plugin(const std::string& path);

}  // namespace dist::pjrt

#ifndef DIST_COMPILED_PJRT
#include <dist/device/pjrt/plugin.ipp>
#endif
