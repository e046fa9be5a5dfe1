#include <dist/context/lasting.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <memory>
#include <string_view>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

using View = dist::TensorView<const float>;
using dist::detail::returns_view;
using dist::detail::WithoutLasting;

static_assert(returns_view<View> && returns_view<std::span<int>> && returns_view<std::span<const int, 3>>);
static_assert(returns_view<std::string_view> && returns_view<std::tuple<int, View>>);
static_assert(returns_view<std::pair<std::optional<View>, int>> && returns_view<std::array<View, 2>>);
static_assert(!returns_view<void> && !returns_view<dist::Tensor<float>> && !returns_view<std::vector<int>>);
static_assert(!returns_view<const float*> && !returns_view<std::tuple<int, dist::Lasting<View>>>);
static_assert(std::same_as<WithoutLasting<std::tuple<int, dist::Lasting<View>>>::Type, std::tuple<int, View>>);
static_assert(std::same_as<WithoutLasting<std::optional<dist::Lasting<View>>>::Type, std::optional<View>>);

TEST_CASE("a view of memory that lasts is returned as the view") {
  dist::Mirrored<dist::ThreadAllReduce> several{2};
  auto variable = several.variable<float>({3}, 2.0f);
  const auto views = several.run([&](auto& replica) { return dist::lasting(variable.read(replica)); });
  static_assert(std::same_as<decltype(views), const dist::PerReplica<View>>);
  CHECK(views[1].data() == variable.component(several.scope(), 1).data());
  const auto [numbers, pairs] = several.run([&](auto& replica) {
    return std::pair{replica.local_index(), dist::lasting(variable.component(replica))};
  });
  static_assert(std::same_as<decltype(pairs), const dist::PerReplica<std::span<float>>>);
  CHECK(numbers[1] == 1);
  CHECK(pairs[1].size() == 3);
  CHECK(several.reduce(dist::sum, views)[2] == 4.0f);

  dist::Default plain;
  auto alone = plain.variable<float>({3}, 2.0f);
  const auto view = plain.run([&](auto& replica) { return dist::lasting(alone.read(replica)); });
  static_assert(std::same_as<decltype(view), const View>);
  CHECK(view.data() == alone.component(plain.scope(), 0).data());
}

TEST_CASE("what is no view passes as it is") {
  dist::Default plain;
  int counter = 0;
  static_assert(std::same_as<decltype(plain.run([&](auto&) -> int& { return counter; })), int&>);
  CHECK(&plain.run([&](auto&) -> int& { return counter; }) == &counter);
  CHECK(*plain.run([](auto&) { return std::make_unique<int>(3); }) == 3);
}
