#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include <dist/core/tensor.hpp>
#include <dist/data/example.hpp>

namespace dist::data {

/// Defines how to copy an element whose views may expire. A specialisation has the type `Owner` and the function
/// `copy(owner, element)`, which reuses memory. By default an element owns its data; user-defined types with views need
/// a specialisation.
template <class Element>
struct Owning {
  using Owner = Element;
  static void copy(Owner& owner, const Element& element) { owner = element; }
};

/// An element with owners in place of its views: Tensors for TensorViews, also in Examples, tuples, pairs and arrays.
template <class Element>
using Owned = typename Owning<Element>::Owner;

/// Copies a view to a Tensor.
template <class T>
struct Owning<TensorView<T>> {
  using Owner = Tensor<std::remove_const_t<T>>;
  static void copy(Owner& owner, TensorView<T> element) {
    owner.resize(element.shape());
    if (element.size() > 0) std::memcpy(owner.data(), element.data(), element.size() * sizeof(T));
  }
};

/// Copies a view to a string.
template <>
struct Owning<std::string_view> {
  using Owner = std::string;
  static void copy(Owner& owner, std::string_view element) { owner = element; }
};

/// Copies each part.
template <detail::HasParts Element>
struct Owning<Element> {
  using Owner = detail::WithParts<Element, Owned>;
  static void copy(Owner& owner, const Element& element) {
    detail::over_parts<Element>([&]<std::size_t... I>() {
      (Owning<std::tuple_element_t<I, detail::Parts<Element>>>::copy(detail::part_of<I>(owner),
                                                                     detail::part_of<I>(element)),
       ...);
    });
  }
};

}  // namespace dist::data
