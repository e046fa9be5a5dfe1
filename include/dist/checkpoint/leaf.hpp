#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/checkpoint/snapshot.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/track.hpp>

namespace dist::detail {

/// A leaf of a walk that is saved as one tensor, such as a variable.
template <class Leaf, class Scope>
concept WholeLeaf = requires(Leaf& leaf, const Scope& scope) {
  leaf.whole(scope);
};
/// One that says itself which shapes it takes, by throwing ShapeMismatch for others.
template <class Leaf>
concept ChecksShape = requires(Leaf& leaf, const Shape& shape) {
  leaf.require_restorable(shape);
};
/// Others take their shape alone.
template <class Leaf>
concept ShapedLeaf = !ChecksShape<Leaf> && requires(Leaf & leaf) {
  leaf.shape();
};

template <class Leaf>
consteval bool require_number() {
  static_assert(
      std::is_arithmetic_v<Leaf>,
      "what a checkpoint keeps has track(visit), or shape(), whole(scope) and restore(scope, values), or is a "
      "number");
  return std::is_arithmetic_v<Leaf>;
}

/// For functions that take what is tracked.
template <class Tracked>
consteval bool require_tracked() {
  static_assert(Trackable<Tracked>,
                "weights are those of something that names its parts by track(visit), such as an nn::Network: see "
                "dist::Trackable");
  return Trackable<Tracked>;
}

/// The tensor's element type that a leaf is saved as; some type for what is refused.
template <class Leaf, class Scope>
struct LeafElementOf {
  using Type = std::conditional_t<std::is_arithmetic_v<Leaf>, Leaf, bool>;
};
template <class Leaf, class Scope>
  requires WholeLeaf<Leaf, Scope>
struct LeafElementOf<Leaf, Scope> {
  using Type = typename decltype(std::declval<Leaf&>().whole(std::declval<const Scope&>()))::Element;
};
template <class Leaf, class Scope>
using LeafElement = typename LeafElementOf<Leaf, Scope>::Type;

/// Puts what a leaf has into a snapshot. A collective call of the processes.
template <class Leaf, class Scope>
void save_leaf(std::string_view key, Leaf& leaf, const Scope& scope, Snapshot& snapshot) {
  if constexpr (WholeLeaf<Leaf, Scope>)
    snapshot.put(key, leaf.whole(scope));
  else if constexpr (require_number<Leaf>())
    snapshot.put_number(key, leaf);
}

/// Gives a leaf the elements of `values`, a tensor of its LeafElement. A collective call of the processes.
template <class Leaf, class Scope, class Values>
void restore_leaf(Leaf& leaf, const Scope& scope, const Values& values) {
  if constexpr (WholeLeaf<Leaf, Scope>)
    leaf.restore(scope, values.view());
  else if constexpr (require_number<Leaf>())
    leaf = values[0];
}

}  // namespace dist::detail
