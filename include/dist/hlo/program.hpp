#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/device/pjrt/buffer.hpp>
#include <dist/device/pjrt/executable.hpp>
#include <dist/hlo/function.hpp>

namespace dist::hlo {

/// A number that a program computes asynchronously; only callers that read it wait. Copies share it. Models Future.
template <class T>
class PendingNumber {
 public:
  /// The result type of `strategy.reduce`.
  using Reduced = T;

  /// Takes over a buffer of one element without axes.
  explicit PendingNumber(pjrt::Buffer buffer) : buffer_(std::make_shared<const pjrt::Buffer>(std::move(buffer))) {}

  /// Throws the error of the program, or DeadlineExceeded.
  void wait() const { buffer_->wait(); }
  [[nodiscard]] bool is_done() const { return buffer_->is_done(); }
  /// Waits for the number.
  [[nodiscard]] T value() const { return buffer_->download<T>()[0]; }
  /// Waits for the number.
  operator T() const { return value(); }

 private:
  std::shared_ptr<const pjrt::Buffer> buffer_;
};

/// One array per replica, in the memory of its device; the argument and result type of a Program for a
/// `Traced<T, Extents...>`. It may still be computed; readers wait.
template <TracedArray A>
class PerReplica {
 public:
  /// The type of the elements.
  using Element = typename A::Element;

  /// Uploads `parts[r]` for replica r. With the extent hlo::batch, parts may have any number of rows, the same for
  /// all. Throws ShapeMismatch, InvalidArgument, OutOfMemory or PjrtError.
  PerReplica(const pjrt::Client& client, std::span<const Tensor<Element>> parts) {
    for (std::size_t replica = 0; replica < parts.size(); ++replica) {
      require_shape(replica, parts[replica].shape());
      buffers_.push_back(upload(client, replica, parts[replica]));
    }
  }
  /// Uploads the same array for each replica.
  PerReplica(const pjrt::Client& client, std::size_t replicas, const Tensor<Element>& part)
      : PerReplica(client, std::vector<Tensor<Element>>(replicas, part)) {}
  /// Takes over buffers of this type and shape, with `rows` rows for the extent hlo::batch.
  explicit PerReplica(std::vector<pjrt::Buffer> buffers, std::optional<std::size_t> rows = std::nullopt) noexcept
      : buffers_(std::move(buffers)), rows_(rows) {}

  /// The number of replicas, which is the number of arrays.
  [[nodiscard]] std::size_t replicas() const noexcept { return buffers_.size(); }
  /// The rows of each part; empty without the extent hlo::batch.
  [[nodiscard]] std::optional<std::size_t> rows() const noexcept { return rows_; }
  /// The device memory of a replica's array. Throws std::out_of_range if the replica does not exist.
  [[nodiscard]] const pjrt::Buffer& buffer(std::size_t replica) const { return buffers_.at(replica); }
  /// Waits for the array of a replica and returns it. Throws the error of the program, or DeadlineExceeded.
  [[nodiscard]] Tensor<Element> on(std::size_t replica) const {
    if (replica >= buffers_.size())
      throw InvalidArgument(concat("Replica ", replica, " does not exist"),
                            concat("the program has ", buffers_.size(), ", numbered from 0"),
                            "Name another replica, or trace the program for more");
    return buffers_[replica].template download<Element>();
  }

 private:
  void require_shape(std::size_t replica, const Shape& shape) {
    bool fits = shape.rank() == A::rank;
    for (std::size_t axis = 0; fits && axis < A::rank; ++axis) {
      if (A::extents[axis] == batch && !rows_) rows_ = shape[axis];
      fits = shape[axis] == (A::extents[axis] == batch ? *rows_ : A::extents[axis]);
    }
    if (fits) return;
    std::string wanted;
    for (const std::size_t extent : A::extents) {
      if (!wanted.empty()) wanted += ", ";
      wanted += extent != batch ? concat(extent) : rows_ ? concat(*rows_) : "rows";
    }
    throw ShapeMismatch(concat("The array for replica ", replica, " does not fit"),
                        concat("its shape is ", shape, ", but the program's shape is [", wanted, "]"),
                        "Give each replica an array of the shape for which the program was traced");
  }

  std::vector<pjrt::Buffer> buffers_;
  std::optional<std::size_t> rows_;
};

namespace detail {

/// The parameter type for an argument; Donated arguments are moved.
template <class Argument>
struct Passed {
  using Type = const PerReplica<Argument>&;
};
template <class A>
struct Passed<Donated<A>> {
  using Type = PerReplica<A>&&;
};

}  // namespace detail

template <class Signature>
class Program;

/// A traced function compiled by XLA for the first devices of a client. A call starts it on all replicas and returns
/// results that may still be computed.
///
///     const hlo::Program program{client, hlo::trace<...>(2, ...)};
///     auto [loss, weights] = program(batch, std::move(weights_before));
template <class... Results, class... Arguments>
class Program<std::tuple<Results...>(Arguments...)> {
 public:
  using Function = hlo::Function<std::tuple<Results...>(Arguments...)>;

  /// Throws ProgramRefused, or InvalidArgument if there are fewer devices than replicas.
  Program(pjrt::Client client, const Function& function)
      : Program(pjrt::Executable{std::move(client), function.module(), function.replicas()}, function.rows()) {}
  /// Takes an executable of this function for batches of `batch_rows` rows.
  explicit Program(pjrt::Executable executable, std::optional<std::size_t> batch_rows = std::nullopt) noexcept
      : executable_(std::move(executable)), rows_(batch_rows) {}

  [[nodiscard]] const pjrt::Executable& executable() const noexcept { return executable_; }

  /// Returns a std::tuple of the results, or a single result itself. Throws InvalidArgument for another number of
  /// replicas, ShapeMismatch for another number of rows, or PjrtError.
  auto operator()(typename detail::Passed<Arguments>::Type... arguments) const {
    const std::size_t replicas = executable_.replicas();
    std::vector<std::vector<const pjrt::Buffer*>> lists(replicas);
    [[maybe_unused]] const auto append = [&](const auto& argument) {
      if (argument.replicas() != replicas)
        throw InvalidArgument(
            "A program cannot be executed",
            concat("it has ", replicas, " replicas, but an argument has parts for ", argument.replicas()),
            "Give each replica its part");
      if (argument.rows() && argument.rows() != rows_)
        throw ShapeMismatch(
            "A program cannot be executed",
            concat("it is traced for batches of ", rows_.value_or(0), " rows, but an argument has ", *argument.rows()),
            "Pad the batch to the rows of the program, or trace a program for this number of rows");
      for (std::size_t replica = 0; replica < replicas; ++replica) lists[replica].push_back(&argument.buffer(replica));
    };
    (append(arguments), ...);
    std::vector<std::vector<pjrt::Buffer>> all = executable_.execute(lists);
    const auto take = [&]<class A>(std::type_identity<A>, std::size_t result) {
      std::vector<pjrt::Buffer> parts;
      for (std::vector<pjrt::Buffer>& of_replica : all) parts.push_back(std::move(of_replica[result]));
      return PerReplica<A>{std::move(parts), A::batch_axes == 0 ? std::nullopt : rows_};
    };
    auto results = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<PerReplica<Results>...>{take(std::type_identity<Results>{}, I)...};
    }
    (std::index_sequence_for<Results...>{});
    if constexpr (sizeof...(Results) == 1)
      return std::get<0>(std::move(results));
    else
      return results;
  }

 private:
  pjrt::Executable executable_;
  std::optional<std::size_t> rows_;
};
/// Deduces the signature from the function.
template <class Signature>
Program(pjrt::Client, const Function<Signature>&) -> Program<Signature>;

}  // namespace dist::hlo
