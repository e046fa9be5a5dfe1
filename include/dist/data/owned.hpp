#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/data/example.hpp>

namespace dist::data {

/// How an element is kept when what it views may end. A specialisation has the type `Owner` and the function
/// `copy(owner, element)`, which reuses the owner's memory. An element without one owns all that it holds; a type of
/// the caller's that holds views needs its own.
template <class Element>
struct Owning {
  using Owner = Element;
  static void copy(Owner& owner, const Element& element) { owner = element; }
};

/// An element with owners in place of its views: Tensors for TensorViews, in Examples, tuples, pairs and arrays as
/// well.
template <class Element>
using Owned = typename Owning<Element>::Owner;

template <class T>
struct Owning<TensorView<T>> {
  using Owner = Tensor<std::remove_const_t<T>>;
  static void copy(Owner& owner, TensorView<T> element) {
    owner.resize(element.shape());
    if (element.size() > 0) std::memcpy(owner.data(), element.data(), element.size() * sizeof(T));
  }
};

template <>
struct Owning<std::string_view> {
  using Owner = std::string;
  static void copy(Owner& owner, std::string_view element) { owner = element; }
};

namespace detail {

/// What std::get takes apart, and an Example, is copied part by part.
template <class Element, class OwnerType>
struct OwningParts {
  using Owner = OwnerType;
  static void copy(Owner& owner, const Element& element) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (Owning<std::tuple_element_t<I, Parts<Element>>>::copy(part_of<I>(owner), part_of<I>(element)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Parts<Element>>>{});
  }
};

}  // namespace detail

template <class X, class Y>
struct Owning<Example<X, Y>> : detail::OwningParts<Example<X, Y>, Example<Owned<X>, Owned<Y>>> {};
template <class... Ts>
struct Owning<std::tuple<Ts...>> : detail::OwningParts<std::tuple<Ts...>, std::tuple<Owned<Ts>...>> {};
template <class A, class B>
struct Owning<std::pair<A, B>> : detail::OwningParts<std::pair<A, B>, std::pair<Owned<A>, Owned<B>>> {};
template <class T, std::size_t Size>
struct Owning<std::array<T, Size>> : detail::OwningParts<std::array<T, Size>, std::array<Owned<T>, Size>> {};

}  // namespace dist::data
