#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/structure.hpp>
#include <dist/core/config.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/specialization.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/schedules/warm_up.hpp>
#include <dist/server/archive.hpp>

namespace dist::nn {

namespace detail {

template <class F>
inline constexpr bool is_warm_up = dist::detail::is_specialization<F, WarmUp>;

/// The optimizer inside an nn::With, and its options.
template <class F>
struct PartsOfWith;
template <class O, class... Options>
struct PartsOfWith<With<O, Options...>> {
  using Optimizer = O;
  using All = std::tuple<Options...>;
};

/// Whether an archive takes the function, with the texts to which it refers.
template <class F>
[[nodiscard]] constexpr bool is_sent() {
  if constexpr (std::is_same_v<F, std::string_view> || Sendable<F>) {
    return true;
  } else if constexpr (is_with<F>) {
    return is_sent<typename PartsOfWith<F>::Optimizer>() && is_sent<typename PartsOfWith<F>::All>();
  } else if constexpr (is_warm_up<F>) {
    return is_sent<decltype(F::then)>();
  } else if constexpr (dist::detail::is_tuple<F>) {
    return []<std::size_t... I>(std::index_sequence<I...>) { return (is_sent<std::tuple_element_t<I, F>>() && ...); }
    (std::make_index_sequence<std::tuple_size_v<F>>{});
  } else if constexpr (Aggregate<F>) {
    return []<class... Members>(const std::tuple<Members&...>*) {
      return (is_sent<std::remove_cv_t<Members>>() && ...);
    }(static_cast<dist::detail::MembersOf<F>*>(nullptr));
  } else {
    return false;
  }
}

template <class F>
void put_function(ArchiveWriter& archive, const F& function) {
  if constexpr (std::is_same_v<F, std::string_view>) {
    archive.put(std::string{function});
  } else if constexpr (Sendable<F>) {
    archive.put(function);
  } else if constexpr (is_with<F>) {
    put_function(archive, static_cast<const typename PartsOfWith<F>::Optimizer&>(function));
    put_function(archive, function.options);
  } else if constexpr (is_warm_up<F>) {
    archive.put(function.steps);
    put_function(archive, function.then);
    archive.put(function.from);
  } else {
    for_each_member(function, [&](const auto& member) { put_function(archive, member); });
  }
}

/// `texts` are those to which it then refers.
template <class F>
[[nodiscard]] F get_function(ArchiveReader& archive, std::deque<std::string>& texts) {
  if constexpr (std::is_same_v<F, std::string_view>) {
    return texts.emplace_back(archive.get<std::string>());
  } else if constexpr (Sendable<F>) {
    return archive.get<F>();
  } else if constexpr (is_with<F>) {
    auto optimizer = get_function<typename PartsOfWith<F>::Optimizer>(archive, texts);
    auto options = get_function<typename PartsOfWith<F>::All>(archive, texts);
    return std::apply([&](auto&... option) { return F{std::move(optimizer), std::move(option)...}; }, options);
  } else if constexpr (is_warm_up<F>) {
    const auto steps = archive.get<std::int64_t>();
    auto then = get_function<decltype(F::then)>(archive, texts);
    return F{steps, std::move(then), archive.get<float>()};
  } else if constexpr (dist::detail::is_tuple<F>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return F{get_function<std::tuple_element_t<I, F>>(archive, texts)...};  // in this order, as in all braces
    }
    (std::make_index_sequence<std::tuple_size_v<F>>{});
  } else {
    return [&]<class... Members>(const std::tuple<Members&...>*) {
      return F{get_function<std::remove_cv_t<Members>>(archive, texts)...};
    }(static_cast<dist::detail::MembersOf<F>*>(nullptr));
  }
}

}  // namespace detail

/// A function of a network's training on its way to a worker: an optimizer's, with its options and schedules, or what a loss or
/// a metric measures. It refers to `texts`, such as its name, which must outlive copies of it.
template <class F>
struct SentFunction {
  static_assert(
      detail::is_sent<F>(),
      "an optimizer, a schedule, a loss or a metric is sent to the workers, which compute with it: let it be a "
      "plain struct of up to 8 members, each of which is a number, a text, a list of these or such a struct");

  F function;
  std::shared_ptr<const void> texts = {};

  void write_to(ArchiveWriter& archive) const {
    archive.put(std::uint8_t{0});  // as every value has a byte
    detail::put_function(archive, function);
  }
  [[nodiscard]] static SentFunction read_from(ArchiveReader& archive) {
    static_cast<void>(archive.get<std::uint8_t>());
    const auto texts = std::make_shared<std::deque<std::string>>();
    auto function = detail::get_function<F>(archive, *texts);
    return {std::move(function), texts};
  }
};

}  // namespace dist::nn
