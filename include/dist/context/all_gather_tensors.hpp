#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/context/per_replica.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

/// Returns the tensors of all members, concatenated along `axis` in rank order, the same on every member (spec E06,
/// H21). `member` names a member in messages: "replica". Throws ShapeMismatch for scalars and differences along other
/// axes, InvalidArgument if `axis` is out of range, and CollectiveMismatch if members pass different axes. A collective
/// call.
template <class Collectives, class T>
[[nodiscard]] Tensor<std::remove_const_t<T>> all_gather_tensors(Collectives collectives, std::string_view member,
                                                                TensorView<T> mine, int axis) {
  using Element = std::remove_const_t<T>;
  struct Extent {
    Shape shape;
    int axis;
  };
  PerReplica<Extent> extents(collectives.communicator().size());
  collectives.all_gather_values("all_gather", Extent{mine.shape(), axis},
                                std::span<Extent>{extents.begin(), extents.size()});
  for (std::size_t rank = 1; rank < extents.size(); ++rank)
    if (extents[rank].axis != extents[0].axis)
      throw CollectiveMismatch(concat("The ", member, "s did not issue the same collectives"),
                               concat(member, " 0 called all_gather along axis ", extents[0].axis, ", but ", member,
                                      " ", rank, " along axis ", extents[rank].axis),
                               concat("Gather along the same axis on every ", member));
  const PerReplica<Shape> shapes(extents.size(), [&](std::size_t rank) { return extents[rank].shape; });
  Tensor<Element> whole{concatenated_shape(member, shapes.values(), axis)};
  const std::size_t along = Axes::resolve(axis, whole.shape());
  const PerReplica<std::size_t> counts(shapes.size(), [&](std::size_t rank) { return shapes[rank].elements(); });
  const std::span<const Element> elements{mine.data(), mine.size()};
  if (along == 0) {
    collectives.all_gather(elements, counts.values(), whole.elements());
    return whole;
  }
  Tensor<Element> behind_each_other{Shape{whole.size()}};
  collectives.all_gather(elements, counts.values(), behind_each_other.elements());
  std::size_t before = 0;
  const Element* part = behind_each_other.data();
  for (const Shape& shape : shapes) {
    place_part(TensorView<const Element>{part, shape}, along, before, whole.view());
    part += shape.elements();
    before += shape[along];
  }
  return whole;
}

}  // namespace dist
