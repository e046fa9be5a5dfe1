#include <dist/strategy/default.hpp>

#include <cstddef>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include <doctest/doctest.h>
#include <conformance/strategy.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, conformance::Make<dist::Default>);

TEST_CASE("Default runs in the calling thread and passes exceptions on unchanged (spec A21)") {
  dist::Default strategy;
  CHECK(strategy.run([](auto&) { return std::this_thread::get_id(); }) == std::this_thread::get_id());
  CHECK_THROWS_AS(strategy.run([](auto&) { throw std::out_of_range("row 9"); }), std::out_of_range);
  static_assert(dist::Default::num_replicas_in_sync() == 1);
  CHECK(dist::Default::describe() == "Default: 1 replica in the calling thread");
}

TEST_CASE("run under Default returns the value itself, including references (spec C02)") {
  dist::Default strategy;
  int counter = 3;
  decltype(auto) same = strategy.run([&](auto&) -> int& { return counter; });
  static_assert(std::is_same_v<decltype(same), int&>);
  CHECK(&same == &counter);
}

TEST_CASE("Default leaves datasets unchanged (spec A21)") {
  const dist::Tensor<float> numbers{{6, 1}};
  const auto dataset = dist::data::tensor_slices(numbers) | dist::data::batch(4);
  static_assert(
      std::is_same_v<decltype(dist::Default::distribute_dataset(dataset)), std::remove_const_t<decltype(dataset)>>);
  CHECK(dist::Default::distribute_dataset(dataset).cardinality() == dataset.cardinality());
}
