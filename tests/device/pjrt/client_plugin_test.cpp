#include <dist/device/pjrt/client.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <string>

#include <support/environment_variable.hpp>
#include <support/fake_pjrt/fake_pjrt.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::pjrt::load_plugin;
using dist::pjrt::plugin_path;

namespace {

using Variable = support::EnvironmentVariable;

}  // namespace

TEST_CASE("a plugin is found by argument, DIST_PJRT_PLUGIN, TPU_LIBRARY_PATH, or the Python environment") {
  const support::TemporaryFolder python;
  const Variable environment{"VIRTUAL_ENV", python.path().c_str()};
  const std::string cpu = python.write("lib/python3.11/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so", "");
  const Variable no_tpu{"TPU_LIBRARY_PATH", nullptr};
  const Variable none{"DIST_PJRT_PLUGIN", nullptr};
  CHECK(plugin_path() == cpu);
  const std::string tpu = python.write("lib/python3.11/site-packages/libtpu/libtpu.so", "");
  CHECK(plugin_path() == tpu);
  const Variable library{"TPU_LIBRARY_PATH", "/tpu.so"};
  CHECK(plugin_path() == "/tpu.so");
  const Variable ours{"DIST_PJRT_PLUGIN", "/ours.so"};
  CHECK(plugin_path() == "/ours.so");
  CHECK(plugin_path("/chosen.so") == "/chosen.so");
}

TEST_CASE("a missing or ambiguous plugin is an error that explains how to choose one") {
  const support::TemporaryFolder python;
  const Variable no_tpu{"TPU_LIBRARY_PATH", nullptr};
  const Variable none{"DIST_PJRT_PLUGIN", ""};
  const auto refusal = [] { return support::what_throws<dist::NoPlugin>([] { static_cast<void>(plugin_path()); }); };
  {
    const Variable environment{"VIRTUAL_ENV", nullptr};
    CHECK(refusal().find("no Python environment is active). Name the plugin's shared library in DIST_PJRT_PLUGIN") !=
          std::string::npos);
  }
  const Variable environment{"VIRTUAL_ENV", python.path().c_str()};
  CHECK(refusal().find("no file matches '" + python.path() + "/lib/python3*/site-packages/xla_plugins/*/*.so'") !=
        std::string::npos);
  python.write("lib/python3.11/site-packages/xla_plugins/a/a.so", "");
  python.write("lib/python3.11/site-packages/xla_plugins/b/b.so", "");
  CHECK(refusal().find("xla_plugins/b/b.so') Name") == std::string::npos);
  CHECK(refusal().find("The choice of a PJRT plugin is ambiguous (found ") != std::string::npos);
}

TEST_CASE("a plugin is loaded once; an invalid one is rejected with the loader's reason") {
  const dist::pjrt::Api& api = load_plugin(plugin_path());
  CHECK(&load_plugin(plugin_path()) == &api);
  CHECK(api.path() == plugin_path());

  const support::TemporaryFolder folder;
  const std::string words = folder.write("words.so", "no library");
  CHECK(support::what_throws<dist::NoPlugin>([&] { static_cast<void>(load_plugin(words)); }).find("file too short") !=
        std::string::npos);
  CHECK(support::what_throws<dist::NoPlugin>([] {
          static_cast<void>(load_plugin("/nowhere/plugin.so"));
        }).find("No such file") != std::string::npos);
  CHECK(support::what_throws<dist::NoPlugin>([] {
          static_cast<void>(load_plugin("libm.so.6"));
        }).find("it has no function GetPjrtApi") != std::string::npos);
}

TEST_CASE("a plugin of another major version, or with a too small function table, is rejected") {
  const support::TemporaryFolder folder;
  const std::string path = folder.path() + "/plugin.so";
  REQUIRE(symlink(fake_pjrt::plugin().c_str(), path.c_str()) == 0);
  const auto refusal = [&] {
    return support::what_throws<dist::NoPlugin>([&] { static_cast<void>(load_plugin(path)); });
  };
  const std::string begin = "The PJRT plugin '" + path + "' cannot be used (";
  {
    const Variable version{"DIST_FAKE_PJRT_MAJOR_VERSION", "7"};
    CHECK(refusal().find(begin + "it implements version 7.") == 0);
  }
  {
    const Variable size{"DIST_FAKE_PJRT_STRUCT_SIZE", "64"};
    CHECK(refusal().find(begin + "its table of functions has 64 bytes, but at least ") == 0);
  }
  CHECK(load_plugin(path).path() == path);
}
