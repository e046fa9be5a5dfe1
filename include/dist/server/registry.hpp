/// Numbers for functions, to call them in another process of the same program.
///
///   const FunctionId number = FunctionTable<Signature>::number<&function>();  // in the caller
///   FunctionTable<Signature>::find(number)(arguments...);                    // in the other process
///
/// Naming a function in this way anywhere in the program registers it in all processes before main.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/server/archive.hpp>

namespace dist {

/// The identity of the running program without shared libraries, different for each build: the build id from the linker
/// (NT_GNU_BUILD_ID) in hexadecimal, or else a checksum of the file. Throws FileError if it cannot read the file.
[[nodiscard]] const std::string& binary_identity();

/// The position of a function in a program or shared library, independent of the load address.
struct FunctionId {
  std::uint64_t module = 0;  ///< checksum of the identity of the program or library
  std::uint64_t offset = 0;  ///< from the load address

  friend constexpr auto operator<=>(const FunctionId&, const FunctionId&) = default;
  friend constexpr bool operator==(const FunctionId&, const FunctionId&) = default;  // see Task
};

namespace detail {

/// Returns the position of an address in its module. Throws InvalidArgument for code outside modules, and the errors of
/// binary_identity.
[[nodiscard]] FunctionId code_place_of(std::uintptr_t address);

/// The functions of a FunctionTable, type-erased. Thread-safe.
class RegisteredFunctions {
 public:
  using Function = void();

  void add(Function* function);
  /// Throws ArchiveError if no function is registered under the number.
  [[nodiscard]] Function* find(const FunctionId& number, std::string_view type);

 private:
  std::mutex mutex_;
  std::vector<Function*> functions_;
  std::size_t placed_ = 0;  ///< number of `functions_` that are in `by_place_`
  std::map<FunctionId, Function*> by_place_;
};

}  // namespace detail

/// The registered functions of type `Signature`. The number of a function is its position in the program, independent
/// of the load address. Functions of the same name in different translation units have different numbers. Messages can
/// call only registered functions.
template <class Signature>
class FunctionTable {
 public:
  /// Returns the number of a function. Instantiating this member registers the function.
  template <Signature* function>
  [[nodiscard]] static FunctionId number() {
    static const FunctionId place =
        (static_cast<void>(&registered<function>), detail::code_place_of(reinterpret_cast<std::uintptr_t>(function)));
    return place;
  }

  /// Throws ArchiveError if no function is registered under the number.
  [[nodiscard]] static Signature* find(const FunctionId& number) {
    constexpr std::string_view type = detail::type_name<Signature>();
    return reinterpret_cast<Signature*>(all().find(number, type));
  }

 private:
  [[nodiscard]] static detail::RegisteredFunctions& all() {
    static detail::RegisteredFunctions functions;
    return functions;
  }
  static bool add(Signature* function) {
    all().add(reinterpret_cast<detail::RegisteredFunctions::Function*>(function));
    return true;
  }
  /// Registers the function when the program starts or the library is loaded.
  template <Signature* function>
  static inline const bool registered = add(function);
};

/// A function as an empty callable object, to schedule or send in place of a function pointer.
template <auto f>
  requires std::is_function_v<std::remove_pointer_t<decltype(f)>>
struct Function {
  /// Calls `f`.
  template <class... Arguments>
    requires std::invocable<decltype(f), Arguments...>
  constexpr decltype(auto) operator()(Arguments&&... arguments) const {
    return f(std::forward<Arguments>(arguments)...);
  }
};
/// The callable object of function `f`.
template <auto f>
inline constexpr Function<f> function{};

namespace detail {

template <class F>
inline constexpr bool is_function_pointer = std::is_function_v<std::remove_pointer_t<F>>;
template <class F>
inline constexpr bool has_parts = (EmptyValue<F> && !Structure<F>) || Aggregate<F>;

}  // namespace detail

/// A callable that another process of the program can run: a lambda without captures, `dist::function<f>`, or a plain
/// struct with operator() whose members can be sent.
template <class F>
concept Schedulable = !std::is_reference_v<F> && detail::has_parts<F> && Sendable<F>;

namespace detail {

/// Fails to compile with an explanation if another process cannot run `F`.
template <class F>
[[nodiscard]] constexpr bool require_schedulable() {
  static_assert(!is_function_pointer<F>,
                "a pointer to a function is valid only in this process: write dist::function<f>, or a lambda that "
                "calls the function");
  static_assert(is_function_pointer<F> || has_parts<F>,
                "a scheduled function runs in another process, without its captures: pass them as arguments, or "
                "schedule a plain struct with at most 8 members");
  if constexpr (is_function_pointer<F> || !has_parts<F>)
    return false;
  else
    return require_sendable<F>();
}

}  // namespace detail

/// A function that runs a scheduled function in `context` (see `invoke`).
template <class Context>
using Invocation = std::vector<std::byte>(Context&, ArchiveReader&);
/// Reads a function of type F and a tuple of its arguments from the archive, calls `function(context, arguments...)`,
/// and returns the bytes of the result, none for void. Throws ArchiveError, and what the function throws.
template <class Context, class F, class... Arguments>
std::vector<std::byte> invoke(Context& context, ArchiveReader& archive) {
  F function = archive.get<F>();
  auto arguments = archive.get<std::tuple<Arguments...>>();
  archive.expect_end();
  const auto call = [&](Arguments&... given) -> decltype(auto) { return function(context, given...); };
  using Result = decltype(std::apply(call, arguments));
  if constexpr (std::is_void_v<Result>) {
    std::apply(call, arguments);
    return {};
  } else if constexpr (detail::require_sendable<std::remove_cvref_t<Result>>()) {
    return to_bytes<std::remove_cvref_t<Result>>(std::apply(call, arguments));
  } else {
    return {};
  }
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/server/registry.ipp>
#endif
