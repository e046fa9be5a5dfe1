#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

namespace dist::detail {

/// False, for a static_assert that fails only when the enclosing template is instantiated with these arguments.
template <class...>
inline constexpr bool always_false = false;

/// True if `T` is an instance of `Template`.
template <class T, template <class...> class Template>
inline constexpr bool is_specialization = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool is_specialization<Template<Arguments...>, Template> = true;

/// The compiler's name of a type, for messages and to compare types between replicas.
template <class T>
[[nodiscard]] constexpr std::string_view type_name() {
  std::string_view name = __PRETTY_FUNCTION__;  // "… [with T = float; …]" or "… [T = float]"
  name.remove_prefix(name.find("T = ") + 4);
  return name.substr(0, name.find_first_of(";]"));
}

}  // namespace dist::detail

namespace dist {

/// A function that does nothing.
struct NoOp {
  /// Ignores its arguments.
  constexpr void operator()(const auto&...) const noexcept {}
};

}  // namespace dist

namespace dist::detail {

/// Converts from all types, by a conversion that is worse than all built-in conversions.
struct FromAnything {
  template <class Argument>
  FromAnything(Argument&&) noexcept;  // never called
};

/// A function object with an additional overload that takes all arguments and is chosen if the object does not take
/// them. If a lambda takes them, the call is ambiguous: the lambda's parameters match the first argument better, and
/// the overload matches the object better, because it is not const. This is decided before return type deduction.
template <class Fn, class... Rest>
struct CallProbe : Fn {
  using Fn::operator();
  void operator()(FromAnything, Rest...);
};

template <class Fn>
concept HasOneCall = requires {
  &Fn::operator();
};

template <class Fn, class First, class... Rest>
concept AnswersProbe = requires(CallProbe<Fn, Rest&&...>& probe) {
  probe(std::declval<First>(), std::declval<Rest>()...);
};

template <class Fn, class First, class... Rest>
concept TakesUnseen =
    std::is_class_v<Fn> && !std::is_final_v<Fn> && !HasOneCall<Fn> && !AnswersProbe<Fn, First, Rest...>;

/// True if an lvalue of type `Fn` is callable with these arguments. std::is_invocable instantiates the body of a
/// generic lambda to deduce its result, so an error in the body is reported again as a wrong argument type. This
/// function instantiates the body only if the lambda is mutable.
template <class Fn, class First, class... Rest>
[[nodiscard]] constexpr bool is_callable() {
  if constexpr (TakesUnseen<std::remove_const_t<Fn>, First, Rest...>)
    return true;
  else
    return std::is_invocable_v<Fn&, First, Rest...>;
}

/// A second base class that makes the name `operator()` ambiguous if `Fn` has one.
struct OneCall {
  void operator()();
};
template <class Fn>
struct CallAmong : Fn, OneCall {};
template <class Fn>
concept HasNoCall = std::is_class_v<Fn> && !std::is_final_v<Fn> && requires {
  &CallAmong<Fn>::operator();
};
/// `is_callable` for a type that may have no operator().
template <class Fn, class First, class... Rest>
[[nodiscard]] constexpr bool is_function_of() {
  if constexpr (HasNoCall<std::remove_const_t<Fn>>)
    return false;
  else
    return is_callable<Fn, First, Rest...>();
}

}  // namespace dist::detail
