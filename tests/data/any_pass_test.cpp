#include <dist/data/any_pass.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <data/sequences.hpp>

using dist::data::detail::any_pass;
using dist::data::detail::AnyElement;
using dist::data::detail::element_ops;
using dist_test::Counting;

TEST_CASE("a type-erased element can be created and moved") {
  AnyElement element{element_ops<std::string>};
  *static_cast<std::string*>(element.get()) = "more than a short string holds in itself";
  const void* const place = element.get();
  AnyElement moved = std::move(element);
  CHECK(moved.get() == place);
  moved = AnyElement{element_ops<std::string>};
  CHECK(static_cast<std::string*>(moved.get())->empty());
}

TEST_CASE("a type-erased pass returns the elements of its iterator") {
  const auto pass = any_pass(Counting{3}, 0);
  std::vector<int> elements;
  for (int element = -1; pass->next(&element);) elements.push_back(element);
  CHECK(elements == std::vector<int>{0, 1, 2});
  int element = -1;
  CHECK_FALSE(pass->next(&element));
}
