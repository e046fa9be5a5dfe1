#pragma once

#include <dlfcn.h>
#include <glob.h>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include <dist/core/pointers.hpp>
#include <dist/device/pjrt/plugin.hpp>

namespace dist::pjrt::detail {

/// The files of a pattern such as "/usr/lib/*.so", in the order of their names.
[[nodiscard]] DIST_INLINE_PJRT std::vector<std::string> files_like(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

}  // namespace dist::pjrt::detail

namespace dist::pjrt {

DIST_INLINE_PJRT std::string plugin_path(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  for (const char* name : {"DIST_PJRT_PLUGIN", "TPU_LIBRARY_PATH"})
    if (const char* const path = std::getenv(name); path != nullptr && *path != 0) return path;
  const char* const environment = std::getenv("VIRTUAL_ENV");
  constexpr std::string_view how =
      "Name the plugin's shared library in DIST_PJRT_PLUGIN; PyPI's xla-cpu-pjrt has one for CPUs, libtpu one for TPUs";
  if (environment == nullptr)
    throw NoPlugin("There is no PJRT plugin",
                   "neither DIST_PJRT_PLUGIN nor TPU_LIBRARY_PATH is set, and no Python environment is active", how);
  const std::string packages = text(environment, "/lib/python3*/site-packages/");
  if (const auto tpu = detail::files_like(packages + "libtpu/libtpu.so"); !tpu.empty()) return tpu.front();
  const std::string pattern = packages + "xla_plugins/*/*.so";
  const std::vector<std::string> found = detail::files_like(pattern);
  if (found.empty())
    throw NoPlugin("There is no PJRT plugin",
                   text("neither DIST_PJRT_PLUGIN nor TPU_LIBRARY_PATH is set, and no file is like ",
                        quoted(pattern, pattern.size())),
                   how);
  if (found.size() > 1)
    throw NoPlugin("Nobody says which PJRT plugin is meant",
                   text("there are ", quoted(found[0], 200), " and ", quoted(found[1], 200)), how);
  return found.front();
}

DIST_INLINE_PJRT const Api& load_plugin(const std::string& path) {
  static std::mutex mutex;
  // Never destroyed: a client that is static may go after it would.
  static auto& loaded = *new std::vector<std::unique_ptr<const Api>>;
  const std::lock_guard lock{mutex};
  for (const std::unique_ptr<const Api>& known : loaded)
    if (known->path() == path) return *known;
  const auto refuse = [&](std::string_view why) {
    throw NoPlugin(text("The PJRT plugin ", quoted(path, path.size()), " cannot be loaded"), why,
                   "Name the shared library of a plugin, or install it again");
  };
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    refuse(printable(error == nullptr ? "no reason is known" : error, 500));
  }
  // POSIX has functions come as pointers to objects.
  const auto get_functions = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get_functions == nullptr) refuse("it has no function GetPjrtApi");
  const PJRT_Api* const functions = get_functions();
  if (functions == nullptr) refuse("its function GetPjrtApi returns nothing");
  auto api = std::make_unique<Api>(functions, path);
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Plugin_Initialize_Args);
  api->call(&PJRT_Api::PJRT_Plugin_Initialize, arguments, [] { return "to be initialised"; });
  return *loaded.emplace_back(std::move(api));
}

}  // namespace dist::pjrt
