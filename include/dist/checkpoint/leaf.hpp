#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/checkpoint/snapshot.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>
#include <dist/io/element_type.hpp>

namespace dist::detail {

/// A leaf of a walk that is saved as one tensor, such as a variable.
template <class Leaf, class Scope>
concept WholeLeaf = requires(Leaf& leaf, const Scope& scope) {
  leaf.whole(scope);
};
/// A leaf that checks shapes itself and throws ShapeMismatch.
template <class Leaf>
concept ChecksShape = requires(Leaf& leaf, const Shape& shape) {
  leaf.require_restorable(shape);
};
template <class Leaf>
consteval bool require_number() {
  static_assert(std::is_arithmetic_v<Leaf>,
                "a checkpoint part is a number, or has track(visit), or has shape(), whole(scope) and restore(scope, "
                "values)");
  return std::is_arithmetic_v<Leaf>;
}

/// A readable compile error unless `Tracked` is Trackable.
template <class Tracked>
consteval bool require_tracked() {
  static_assert(Trackable<Tracked>,
                "weights belong to an object that names its parts by track(visit), such as an nn::Network: see "
                "dist::Trackable");
  return Trackable<Tracked>;
}

/// A type-erased leaf of a walk. `scope` points to a scope of the leaf's strategy.
class AnyLeaf {
 public:
  /// The element type of its tensor.
  [[nodiscard]] virtual io::ElementType type() const noexcept = 0;
  [[nodiscard]] virtual bool is_number() const noexcept { return false; }
  /// The required shape; none if it checks shapes itself.
  [[nodiscard]] virtual std::optional<Shape> shape() const = 0;
  /// Throws ShapeMismatch if it checks shapes itself and cannot be restored from this one.
  virtual void require_restorable(const Shape&) const {}
  /// Returns its value. A collective call of the processes.
  [[nodiscard]] virtual AnyTensor whole(const void* scope) = 0;
  /// Sets its value to a tensor of its type. A collective call of the processes.
  virtual void restore(const void* scope, const AnyTensor& values) = 0;

 protected:
  ~AnyLeaf() = default;
};

/// A variable, or another leaf that is saved as a tensor.
template <class Leaf, class Scope>
class TensorLeaf final : public AnyLeaf {
  using T = typename decltype(std::declval<Leaf&>().whole(std::declval<const Scope&>()))::Element;

 public:
  explicit TensorLeaf(Leaf& leaf) noexcept : leaf_(leaf) {}

  [[nodiscard]] io::ElementType type() const noexcept override { return io::element_type<T>; }
  [[nodiscard]] std::optional<Shape> shape() const override {
    if constexpr (ChecksShape<Leaf>)
      return std::nullopt;
    else
      return leaf_.shape();
  }
  void require_restorable([[maybe_unused]] const Shape& shape) const override {
    if constexpr (ChecksShape<Leaf>) leaf_.require_restorable(shape);
  }
  [[nodiscard]] AnyTensor whole(const void* scope) override {
    return AnyTensor::of(leaf_.whole(*static_cast<const Scope*>(scope)));
  }
  void restore(const void* scope, const AnyTensor& values) override {
    leaf_.restore(*static_cast<const Scope*>(scope), values.view<T>());
  }

 private:
  Leaf& leaf_;
};

template <class Number>
class NumberLeaf final : public AnyLeaf {
 public:
  explicit NumberLeaf(Number& number) noexcept : number_(number) {}

  [[nodiscard]] io::ElementType type() const noexcept override { return io::element_type<Number>; }
  [[nodiscard]] bool is_number() const noexcept override { return true; }
  [[nodiscard]] std::optional<Shape> shape() const override { return Shape{}; }
  [[nodiscard]] AnyTensor whole(const void*) override {
    Tensor<Number> one{Shape{}};
    one[0] = number_;
    return AnyTensor::of(std::move(one));
  }
  void restore(const void*, const AnyTensor& values) override { number_ = values.view<Number>()[0]; }

 private:
  Number& number_;
};

using SeeLeaf = FunctionRef<void(std::string_view key, AnyLeaf& leaf, bool is_optional)>;

/// Calls `see` for the leaves of a walk, with erased types. All library functions use it, so that each `track(visit)`
/// is compiled once.
template <class Scope>
class AnyLeaves {
 public:
  explicit AnyLeaves(SeeLeaf see) : see_(see) {}

  template <class Leaf>
  void operator()(std::string_view key, Leaf& leaf, bool is_optional) const {
    if constexpr (std::is_base_of_v<AnyLeaf, Leaf>) {
      see_(key, leaf, is_optional);
    } else if constexpr (WholeLeaf<Leaf, Scope>) {
      TensorLeaf<Leaf, Scope> any{leaf};
      see_(key, any, is_optional);
    } else if constexpr (require_number<Leaf>()) {
      NumberLeaf<Leaf> any{leaf};
      see_(key, any, is_optional);
    }
  }

 private:
  SeeLeaf see_;
};

/// Calls `see` for every leaf of `tracked`. `Scope` is the type of the scope for reads and restores.
template <class Scope, class Tracked>
void walk_leaves(Tracked&& tracked, SeeLeaf see) {
  const AnyLeaves<std::remove_cvref_t<Scope>> leaves{see};
  walk(tracked, leaves);
}

/// A function that calls its argument for each leaf of an object.
using WalkLeaves = FunctionRef<void(SeeLeaf)>;
/// Returns the WalkLeaves of `tracked`, to which it refers.
template <class Scope, class Tracked>
[[nodiscard]] auto walk_of(Tracked& tracked) {
  return [&tracked](SeeLeaf see) { walk_leaves<Scope>(tracked, see); };
}

/// Adds the value of a leaf to a snapshot. A collective call of the processes.
void save_leaf(std::string_view key, AnyLeaf& leaf, const void* scope, Snapshot& snapshot);

/// Throws ShapeMismatch in all processes, with the first number that differs, unless all have the same numbers: a
/// checkpoint stores one value of each. A collective call.
void require_equal_numbers(const AnyStrategy& strategy, const std::vector<SavedNumber>& numbers);

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/checkpoint/leaf.ipp>
#endif
