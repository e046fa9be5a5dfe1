/// Functions by number: a process asks another one of the same program for a function whose type both know.
///
///   const FunctionId number = FunctionTable<Signature>::number<&function>();  // in the process that asks
///   FunctionTable<Signature>::find(number)(arguments...);                    // in the one that does it
///
/// To name a function in this way anywhere in the program registers it in all processes of the program, before main.
#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/binary.hpp>

namespace dist {

/// The registered functions of type `Signature`. A function's number is its place in the program, so it depends neither on
/// where the program was loaded nor on the order of its translation units, and functions of the same name in two of these
/// have different ones. Only numbers of registered functions are found, whatever a message says.
template <class Signature>
class FunctionTable {
 public:
  /// The number of a function, which the mention here registers.
  template <Signature* function>
  [[nodiscard]] static FunctionId number() {
    static const FunctionId place =
        (static_cast<void>(&registered<function>), detail::code_place_of(reinterpret_cast<std::uintptr_t>(function)));
    return place;
  }

  /// The function of that number. Throws ArchiveError where none is registered under it.
  [[nodiscard]] static Signature* find(const FunctionId& number) {
    Entries& entries = all();
    const std::lock_guard lock{entries.mutex};
    for (; entries.placed < entries.functions.size(); ++entries.placed) {
      Signature* const function = entries.functions[entries.placed];
      entries.by_place.emplace(detail::code_place_of(reinterpret_cast<std::uintptr_t>(function)), function);
    }
    const auto found = entries.by_place.find(number);
    if (found == entries.by_place.end())
      throw ArchiveError("A message asks for a function that this program does not have",
                         concat("no function of type ", detail::type_name<Signature>(), " is registered at ",
                                number.offset, " of module ", number.module),
                         "Start all processes of the job from one build of the program");
    return found->second;
  }

 private:
  struct Entries {
    std::mutex mutex;
    std::vector<Signature*> functions;
    std::size_t placed = 0;  ///< of `functions`, that are in `by_place`
    std::map<FunctionId, Signature*> by_place;
  };
  [[nodiscard]] static Entries& all() {
    static Entries entries;
    return entries;
  }
  static bool add(Signature* function) {
    const std::lock_guard lock{all().mutex};
    all().functions.push_back(function);
    return true;
  }
  /// Its initialisation, before main or when a library is loaded, registers the function.
  template <Signature* function>
  static inline const bool registered = add(function);
};

/// A function as an empty object that calls it: what can be scheduled, and sent, in place of a pointer to the function.
template <auto f>
  requires std::is_function_v<std::remove_pointer_t<decltype(f)>>
struct Function {
  template <class... Arguments>
    requires std::invocable<decltype(f), Arguments...>
  constexpr decltype(auto) operator()(Arguments&&... arguments) const {
    return f(std::forward<Arguments>(arguments)...);
  }
};
template <auto f>
inline constexpr Function<f> function{};

namespace detail {

template <class F>
inline constexpr bool is_function_pointer = std::is_function_v<std::remove_pointer_t<F>>;
template <class F>
inline constexpr bool has_parts = (EmptyValue<F> && !Structure<F>) || Aggregate<F>;

}  // namespace detail

/// What another process of the program can run: a lambda without captures, `dist::function<f>`, or a plain struct with
/// operator() whose members can be sent. A lambda with captures is none of these: where they are is in this process.
template <class F>
concept Schedulable = !std::is_reference_v<F> && detail::has_parts<F> && Sendable<F>;

namespace detail {

/// Refuses, in a sentence, what another process cannot run, and says whether it can.
template <class F>
[[nodiscard]] constexpr bool require_schedulable() {
  static_assert(
      !is_function_pointer<F>,
      "a pointer to a function is an address of this process: write dist::function<f>, or a lambda that calls "
      "the function");
  static_assert(is_function_pointer<F> || has_parts<F>,
                "a scheduled function runs in another process, where its captures are not: pass them as arguments, or "
                "schedule a plain struct with members, of which it may have 8");
  if constexpr (is_function_pointer<F> || !has_parts<F>)
    return false;
  else
    return require_sendable<F>();
}

}  // namespace detail

/// Runs `function(context, arguments...)`, all but the context from an archive of a function of type F and a tuple of the
/// arguments, and returns the bytes of its result, none for void. Its instances are functions for a
/// FunctionTable<Invocation<Context>>. Throws ArchiveError, and what the function throws.
template <class Context>
using Invocation = std::vector<std::byte>(Context&, ArchiveReader&);
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
