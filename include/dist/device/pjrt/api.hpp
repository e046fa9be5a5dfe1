/// PJRT, the interface for running XLA programs on CPUs, GPUs and TPUs, and exceptions for its errors. The only header
/// that includes it.
#pragma once

#if !__has_include(<pjrt_c_api.h>)
#error \
    "<pjrt_c_api.h> of PJRT was not found: install PyPI's xla-cpu-pjrt, and link dist::pjrt (without CMake: -ldl, and for g++ -fpermissive)"
#endif

#include <pjrt_c_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

/// A failed call of a PJRT plugin. The text contains the plugin's message.
class PjrtError : public Error {
 public:
  /// `code` is the plugin's error code.
  PjrtError(PJRT_Error_Code code, std::string_view problem, std::string_view why, std::string_view suggestion)
      : Error(problem, why, suggestion), code_(code) {}

  /// The plugin's error code.
  [[nodiscard]] PJRT_Error_Code code() const noexcept { return code_; }

 private:
  PJRT_Error_Code code_;
};

/// XLA cannot compile the program: it is malformed or uses operations that the platform does not support.
class ProgramRefused : public PjrtError {
 public:
  using PjrtError::PjrtError;
};

/// No usable PJRT plugin was found.
class NoPlugin : public Error {
 public:
  using Error::Error;
};

namespace pjrt {

/// Returns zero-initialised arguments of a call, with `struct_size` set.
template <class Arguments>
[[nodiscard]] Arguments sized_arguments(std::size_t size) noexcept {
  Arguments arguments;
  std::memset(&arguments, 0, sizeof arguments);
  arguments.struct_size = size;
  return arguments;
}
/// Arguments of `type` for a function of a plugin: all zero except the size of the struct, as PJRT requires.
#define DIST_PJRT_ARGUMENTS(type) ::dist::pjrt::sized_arguments<type>(type##_STRUCT_SIZE)

/// The PJRT type for the number type T.
template <class T>
inline constexpr PJRT_Buffer_Type buffer_type = [] {
  static_assert(::dist::detail::always_false<T>, "PJRT has no such number type");
  return PJRT_Buffer_Type_INVALID;
}();
/// @cond
template <>
inline constexpr PJRT_Buffer_Type buffer_type<bool> = PJRT_Buffer_Type_PRED;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<std::int8_t> = PJRT_Buffer_Type_S8;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<std::int16_t> = PJRT_Buffer_Type_S16;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<std::int32_t> = PJRT_Buffer_Type_S32;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<std::int64_t> = PJRT_Buffer_Type_S64;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<std::uint8_t> = PJRT_Buffer_Type_U8;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<std::uint16_t> = PJRT_Buffer_Type_U16;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<std::uint32_t> = PJRT_Buffer_Type_U32;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<std::uint64_t> = PJRT_Buffer_Type_U64;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<Float16> = PJRT_Buffer_Type_F16;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<BFloat16> = PJRT_Buffer_Type_BF16;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<float> = PJRT_Buffer_Type_F32;
template <>
inline constexpr PJRT_Buffer_Type buffer_type<double> = PJRT_Buffer_Type_F64;
/// @endcond

/// The functions of a plugin. The plugin has threads, so it is never unloaded.
class Api {
 public:
  /// Throws NoPlugin if the major version of the interface differs, or required functions are missing. `path` is the
  /// plugin's file.
  Api(const PJRT_Api* functions, std::string path) : functions_(functions), path_(std::move(path)) {
    const PJRT_Api_Version& version = functions_->pjrt_api_version;
    if (version.major_version != PJRT_API_MAJOR)
      refuse(concat("it implements version ", version.major_version, ".", version.minor_version,
                    " of the PJRT interface, but this program was compiled for ", PJRT_API_MAJOR, ".", PJRT_API_MINOR));
    if (functions_->struct_size < needed_size)
      refuse(concat("its table of functions has ", functions_->struct_size, " bytes, but at least ", needed_size,
                    " are needed; its version of the PJRT interface is ", version.major_version, ".",
                    version.minor_version));
  }

  /// The path of the plugin's library.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The functions of the plugin, for direct calls.
  [[nodiscard]] const PJRT_Api* get() const noexcept { return functions_; }

  /// Calls a function of the plugin. `what()` returns its purpose for errors: "to compile 'step'". Throws OutOfMemory,
  /// or `Refusal`, by default PjrtError.
  template <class Refusal = PjrtError, class Arguments, class What>
  void call(PJRT_Error* (*PJRT_Api::*function)(Arguments*), Arguments& arguments, What&& what) const {
    require(function, what);
    if (PJRT_Error* const error = (functions_->*function)(&arguments)) [[unlikely]]
      fail<Refusal>(error, concat(what()));
  }
  /// Calls a function of the plugin in a destructor, and ignores errors.
  template <class Arguments>
  void call_noexcept(PJRT_Error* (*PJRT_Api::*function)(Arguments*), Arguments& arguments) const noexcept {
    if (PJRT_Error* const error = (functions_->*function)(&arguments)) destroy(error);
  }

  /// Destroys an error without reporting it.
  void destroy(PJRT_Error* error) const noexcept {
    auto arguments = DIST_PJRT_ARGUMENTS(PJRT_Error_Destroy_Args);
    arguments.error = error;
    functions_->PJRT_Error_Destroy(&arguments);
  }

  /// Throws the exception for `error`, and destroys it.
  template <class Refusal = PjrtError>
  [[noreturn]] void fail(PJRT_Error* error, std::string_view what) const {
    auto message = DIST_PJRT_ARGUMENTS(PJRT_Error_Message_Args);
    message.error = error;
    functions_->PJRT_Error_Message(&message);
    auto code = DIST_PJRT_ARGUMENTS(PJRT_Error_GetCode_Args);
    code.error = error;
    code.code = PJRT_Error_Code_UNKNOWN;
    if (PJRT_Error* const second = functions_->PJRT_Error_GetCode(&code)) destroy(second);
    const std::string said = printable({message.message, message.message_size}, longest_message, "\n");
    destroy(error);
    const std::string problem = concat("The PJRT plugin ", quoted(path_, path_.size()), " refuses ", what);
    if (code.code == PJRT_Error_Code_RESOURCE_EXHAUSTED)
      throw OutOfMemory(problem, said, "Make the model or the batch smaller, or use more devices");
    throw Refusal(code.code, problem, said, suggestion<Refusal>());
  }

 private:
  // The first lines of XLA's message name the unsupported operation.
  static constexpr std::size_t longest_message = 2000;
  // Up to the last function that is called unconditionally.
  static constexpr std::size_t needed_size = offsetof(PJRT_Api, PJRT_Buffer_ReadyEvent) + sizeof(void*);

  template <class Refusal>
  [[nodiscard]] static constexpr std::string_view suggestion() {
    if constexpr (std::is_same_v<Refusal, ProgramRefused>)
      return "Check the operation that the message names, in the program's text";
    return "Check the plugin's message, and the devices that the plugin needs";
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw NoPlugin(concat("The PJRT plugin ", quoted(path_, path_.size()), " cannot be used"), why,
                   "Install a plugin of the header's version, or compile with a header of the plugin's version");
  }

  template <class Member, class What>
  void require(Member function, What&& what) const {
    const auto end = reinterpret_cast<const char*>(&(functions_->*function)) + sizeof(void*);
    if (static_cast<std::size_t>(end - reinterpret_cast<const char*>(functions_)) <= functions_->struct_size &&
        functions_->*function != nullptr) [[likely]]
      return;
    throw PjrtError(PJRT_Error_Code_UNIMPLEMENTED,
                    concat("The PJRT plugin ", quoted(path_, path_.size()), " lacks the function ", what()),
                    concat("its version of the interface is ", functions_->pjrt_api_version.major_version, ".",
                           functions_->pjrt_api_version.minor_version),
                    "Install a newer plugin");
  }

  const PJRT_Api* functions_;
  std::string path_;
};

namespace detail {

template <auto object, auto destroy>
struct Destroy;
template <class T, class Arguments, T* Arguments::*object, PJRT_Error* (*PJRT_Api::*destroy)(Arguments*)>
struct Destroy<object, destroy> {
  using Object = T;
  const Api* api;
  void operator()(T* handle) const noexcept {
    auto arguments = sized_arguments<Arguments>(sizeof(Arguments));
    arguments.*object = handle;
    api->call_noexcept(destroy, arguments);
  }
};

}  // namespace detail

/// A unique_ptr to an object of a plugin. `object` is the argument of the plugin's function `destroy`.
template <auto object, auto destroy>
using Owned = std::unique_ptr<typename detail::Destroy<object, destroy>::Object, detail::Destroy<object, destroy>>;

}  // namespace pjrt
}  // namespace dist
