#pragma once

#include <cstddef>
#include <utility>

#include <dist/context/cross_replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/server_variable.hpp>

namespace dist {

/// Some elements of a variable on parameter servers as a tensor of their own: a leaf of a walk. Refers to the variable.
template <class T, rpc::Transport Via>
class VariablePart {
 public:
  using Element = T;

  /// The elements of a tensor of that shape, from number `first` on.
  VariablePart(ServerVariable<T, Via>& variable, std::size_t first, Shape shape)
      : variable_(&variable), first_(first), shape_(std::move(shape)) {}

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] Tensor<T> whole(const InCrossReplica auto& scope) const {
    Tensor<T> part{shape_};
    const Tensor<T> all = variable_->read(scope);
    std::copy_n(all.data() + first_, part.size(), part.data());
    return part;
  }
  /// Its inverse, for the elements of this part, while nobody else writes.
  void restore(const InCrossReplica auto& scope, TensorView<const T> values) const {
    Tensor<T> all = variable_->read(scope);
    std::copy_n(values.data(), values.size(), all.data() + first_);
    variable_->assign(scope, all);
  }

 private:
  ServerVariable<T, Via>* variable_;
  std::size_t first_;
  Shape shape_;
};

}  // namespace dist
