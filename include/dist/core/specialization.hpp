#pragma once

namespace dist::detail {

/// Whether `T` is a `Template` of some types.
template <class T, template <class...> class Template>
inline constexpr bool is_specialization = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool is_specialization<Template<Arguments...>, Template> = true;

}  // namespace dist::detail
