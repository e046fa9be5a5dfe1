#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn::detail {

/// The outputs of a network for the steps of a pass: for each step the rows of all replicas of this process, in order.
/// Each step is computed in one process; the others only count its rows.
template <class T>
class Predictions {
 public:
  explicit Predictions(std::size_t replicas) : parts_(replicas) {}

  /// Stores a replica's rows of this step, in any memory.
  template <dist::MemorySpace Where>
  void put(const auto& replica, TensorView<const T, Where> rows) {
    Part& part = parts_[replica.local_index()];
    part.rows = rows.rows();
    part.is_here = true;
    part.values.resize(rows.shape());
    if constexpr (Where::host_accessible) {
      if (rows.size() > 0) std::memcpy(part.values.data(), rows.data(), rows.size() * sizeof(T));
    } else {
      const auto queue = replica.queue();
      queue.copy(rows.elements(), part.values.elements());
      queue.wait();
    }
  }
  /// Counts rows that another process computes.
  void leave_out(const auto& replica, std::size_t rows) {
    parts_[replica.local_index()].rows = rows;
    parts_[replica.local_index()].is_here = false;
  }

  void end_step() {
    for (const Part& part : parts_) {
      if (part.is_here) {
        row_shape_ = part.values.shape().row();
        runs_.push_back({rows_, part.rows});
        values_.insert(values_.end(), part.values.data(), part.values.data() + part.values.size());
      }
      rows_ += part.rows;
    }
  }

  /// Returns the rows of all processes. A collective call of `workers`.
  [[nodiscard]] Tensor<T> join(const auto& workers) const {
    // Processes without a step receive the shape of a row from the others.
    std::array<std::uint64_t, Shape::max_rank + 1> described{};
    described[0] = row_shape_.rank();
    for (std::size_t axis = 0; axis < row_shape_.rank(); ++axis) described[axis + 1] = row_shape_[axis];
    workers.all_reduce(max, std::span<std::uint64_t>{described});
    std::array<std::size_t, Shape::max_rank> extents{};
    std::copy_n(described.begin() + 1, Shape::max_rank, extents.begin());
    const Shape row{std::span<const std::size_t>{extents.data(), static_cast<std::size_t>(described[0])}};

    Tensor<T> all{row.stacked(rows_)};
    const std::size_t row_size = row.elements();
    const T* next = values_.data();
    for (const Run& run : runs_) {
      std::copy_n(next, run.rows * row_size, all.data() + run.first * row_size);
      next += run.rows * row_size;
    }
    // Every row is zero in all processes but one, so a sum of bits gives the bits, also of -0 and NaN.
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "networks compute in float or double");
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    std::vector<Bits> bits(all.size());
    if (!bits.empty()) std::memcpy(bits.data(), all.data(), all.size() * sizeof(T));
    workers.all_reduce(sum, std::span<Bits>{bits});
    if (!bits.empty()) std::memcpy(all.data(), bits.data(), all.size() * sizeof(T));
    return all;
  }

 private:
  /// A replica's rows of a step.
  struct Part {
    Tensor<T> values;
    std::size_t rows = 0;
    bool is_here = false;
  };
  /// Consecutive rows that were computed here.
  struct Run {
    std::size_t first;
    std::size_t rows;
  };

  std::vector<Part> parts_;
  std::vector<T> values_;
  std::vector<Run> runs_;
  std::size_t rows_ = 0;
  Shape row_shape_;
};

}  // namespace dist::nn::detail
