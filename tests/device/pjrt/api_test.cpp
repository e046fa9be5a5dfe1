#include <dist/device/pjrt/api.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include <support/what_throws.hpp>

using dist::pjrt::Api;

namespace {

/// Errors of a plugin, which are numbers here.
PJRT_Error* const out_of_memory = reinterpret_cast<PJRT_Error*>(PJRT_Error_Code_RESOURCE_EXHAUSTED);
PJRT_Error* const wrong_argument = reinterpret_cast<PJRT_Error*>(PJRT_Error_Code_INVALID_ARGUMENT);
int destroyed = 0;

/// The functions of a plugin that fails every call with `error`.
template <PJRT_Error* const& error>
PJRT_Api plugin() {
  PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.major_version = PJRT_API_MAJOR;
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
  api.PJRT_Error_Message = [](PJRT_Error_Message_Args* arguments) {
    arguments->message = "line 3\x1b: no\nthanks";
    arguments->message_size = 18;
  };
  api.PJRT_Error_GetCode = [](PJRT_Error_GetCode_Args* arguments) -> PJRT_Error* {
    arguments->code = static_cast<PJRT_Error_Code>(reinterpret_cast<std::size_t>(arguments->error));
    return nullptr;
  };
  api.PJRT_Error_Destroy = [](PJRT_Error_Destroy_Args*) { ++destroyed; };
  api.PJRT_Client_Compile = [](PJRT_Client_Compile_Args* arguments) -> PJRT_Error* {
    return arguments->struct_size == PJRT_Client_Compile_Args_STRUCT_SIZE ? error : nullptr;
  };
  return api;
}

/// Returns the error of a call with this plugin.
template <class Refusal = dist::PjrtError, class Expected = Refusal>
std::string refusal(const PJRT_Api& functions) {
  const Api api{&functions, "/lib/plugin.so"};
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Client_Compile_Args);
  return support::what_throws<Expected>(
      [&] { api.call<Refusal>(&PJRT_Api::PJRT_Client_Compile, arguments, [] { return "to compile 'step'"; }); });
}

}  // namespace

TEST_CASE("an error of a plugin is thrown with its message, and destroyed") {
  destroyed = 0;
  CHECK(refusal(plugin<wrong_argument>()) ==
        "The PJRT plugin '/lib/plugin.so' refuses to compile 'step' (line 3\\x1b: no\nthanks). Check the plugin's "
        "message, and the devices that the plugin needs.");
  CHECK(destroyed == 1);
  CHECK(refusal<dist::ProgramRefused>(plugin<wrong_argument>()).find("Check the operation that the message names") !=
        std::string::npos);
  CHECK(refusal<dist::PjrtError, dist::OutOfMemory>(plugin<out_of_memory>())
            .find("Make the model or the batch smaller") != std::string::npos);
  CHECK(destroyed == 3);

  const PJRT_Api functions = plugin<wrong_argument>();
  const Api api{&functions, "/lib/plugin.so"};
  auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Client_Compile_Args);
  try {
    api.call(&PJRT_Api::PJRT_Client_Compile, arguments, [] { return ""; });
    FAIL("nothing was thrown");
  } catch (const dist::PjrtError& error) {
    CHECK(error.code() == PJRT_Error_Code_INVALID_ARGUMENT);
  }
}

TEST_CASE("a plugin of another major version, or a too old one, is rejected") {
  PJRT_Api other = plugin<wrong_argument>();
  other.pjrt_api_version.major_version = PJRT_API_MAJOR + 1;
  other.pjrt_api_version.minor_version = 7;
  CHECK(support::what_throws<dist::NoPlugin>([&] {
          Api{&other, "/lib/plugin.so"};
        })
            .find(dist::concat("it implements version ", PJRT_API_MAJOR + 1,
                               ".7 of the PJRT interface, but this program was compiled for ", PJRT_API_MAJOR, ".",
                               PJRT_API_MINOR)) != std::string::npos);
  PJRT_Api old = plugin<wrong_argument>();
  old.struct_size = offsetof(PJRT_Api, PJRT_Client_Create);
  CHECK(support::what_throws<dist::NoPlugin>([&] {
          Api{&old, "/lib/plugin.so"};
        }).find("its table of functions has ") != std::string::npos);
}

TEST_CASE("a missing function of a plugin is an error, beyond the end of its table or within") {
  PJRT_Api functions = plugin<wrong_argument>();
  const auto lacks = [&](auto function, auto arguments) {
    const Api api{&functions, "/lib/plugin.so"};
    return support::what_throws<dist::PjrtError>([&] {
             api.call(function, arguments, [] { return "to do it"; });
           }).find("lacks the function to do it") != std::string::npos;
  };
  functions.PJRT_Client_Compile = nullptr;
  CHECK(lacks(&PJRT_Api::PJRT_Client_Compile, DIST_PJRT_ARGUMENTS(PJRT_Client_Compile_Args)));
  functions.PJRT_Client_DmaMap = [](PJRT_Client_DmaMap_Args*) -> PJRT_Error* { return nullptr; };
  CHECK_FALSE(lacks(&PJRT_Api::PJRT_Client_DmaMap, DIST_PJRT_ARGUMENTS(PJRT_Client_DmaMap_Args)));
  functions.struct_size = offsetof(PJRT_Api, PJRT_Client_DmaMap);
  CHECK(lacks(&PJRT_Api::PJRT_Client_DmaMap, DIST_PJRT_ARGUMENTS(PJRT_Client_DmaMap_Args)));
}
