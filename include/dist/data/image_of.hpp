/// The image of an element, for steps that change images.
#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/example.hpp>

namespace dist::data::detail {

/// The element with `change(view)` in place of its image, where that is a Tensor or a TensorView [height, width,
/// channels], or the `x` of an Example. Throws ShapeMismatch, which names `step`, for another number of axes.
template <class Element, class Change>
[[nodiscard]] auto with_image(const char* step, const Element& element, Change change) {
  if constexpr (dist::detail::is_specialization<Element, Example>) {
    return Example{with_image(step, element.x, change), element.y};
  } else {
    constexpr bool is_array =
        dist::detail::is_specialization<Element, Tensor> || dist::detail::is_specialization<Element, TensorView>;
    static_assert(is_array,
                  "random_flip, random_crop and resize_images: elements must be Tensors or TensorViews, or Examples "
                  "whose x is one: map "
                  "them");
    if constexpr (is_array) {
      if (element.shape().rank() != 3)
        throw ShapeMismatch(concat(step, " got what is no image"),
                            concat("its shape is ", to_string(element.shape()), ", expected [height, width, channels]"),
                            "Put it before batch, or bring the images to this shape with map");
      return change(TensorView<const std::remove_const_t<typename Element::Element>>{element});
    }
  }
}

}  // namespace dist::data::detail
