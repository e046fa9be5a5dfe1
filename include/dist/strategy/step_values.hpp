#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/per_replica.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/example.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/program.hpp>
#include <dist/hlo/traced.hpp>
#include <dist/strategy/trace_context.hpp>

namespace dist::detail {

/// The traced type of a number or tensor argument.
template <class Given>
struct TracedForm {};
template <Reducible T>
struct TracedForm<T> {
  using Type = hlo::Traced<T>;
};
template <class T>
struct TracedForm<Tensor<T>> {
  using Type = hlo::Dynamic<T>;
};
template <class T>
struct TracedForm<TensorView<T>> {
  using Type = hlo::Dynamic<std::remove_const_t<T>>;
};
template <class Given>
concept HasTracedForm = requires {
  typename TracedForm<Given>::Type;
};
template <class Leaf>
using ElementOfLeaf = typename TracedForm<Leaf>::Type::Element;

/// True if every member of an argument has a traced form.
template <class Given>
inline constexpr bool is_step_argument = HasTracedForm<Given>;
template <class... Members>
inline constexpr bool are_step_arguments = (is_step_argument<std::remove_cvref_t<Members>> && ...);
template <class X, class Y>
inline constexpr bool is_step_argument<data::Example<X, Y>> = are_step_arguments<X, Y>;
template <class... Members>
inline constexpr bool is_step_argument<std::tuple<Members...>> = are_step_arguments<Members...>;
template <class First, class Second>
inline constexpr bool is_step_argument<std::pair<First, Second>> = are_step_arguments<First, Second>;
template <class Member, std::size_t N>
inline constexpr bool is_step_argument<std::array<Member, N>> = is_step_argument<Member>;

/// Calls `use(leaf, has_rows)` for each number and tensor of replica `replica`'s argument, in order and in place.
/// Tensors of a PerReplica have the rows of a batch, others only if `all_have_rows`; `has_rows` is a
/// std::bool_constant.
template <bool all_have_rows, class Given, class Use>
void for_each_leaf([[maybe_unused]] std::size_t replica, const Given& given, Use&& use) {
  if constexpr (is_per_replica<Given>)
    for_each_leaf<true>(replica, given[replica], use);
  else if constexpr (Structure<Given> || is_specialization<Given, data::Example>)
    for_each_member(given, [&](const auto& member) { for_each_leaf<all_have_rows>(replica, member, use); });
  else
    use(given, std::bool_constant < all_have_rows && !Reducible < Given >> {});
}

/// Returns `given` with each number and tensor replaced by `map(leaf)`.
template <class Given, class Map>
[[nodiscard]] auto map_leaves(const Given& given, Map&& map) {
  if constexpr (Structure<Given>) {
    return map_structure(given, [&](const auto& member) { return map_leaves(member, map); });
  } else if constexpr (is_specialization<Given, data::Example>) {
    auto x = map_leaves(given.x, map);
    return data::Example{std::move(x), map_leaves(given.y, map)};
  } else {
    return map(given);
  }
}

/// Returns a program's arguments for the leaves, in order.
class LeafArguments {
 public:
  explicit LeafArguments(std::span<const hlo::Value> values) : next_(values.begin()) {}
  template <class Leaf>
  [[nodiscard]] auto operator()(const Leaf&) {
    return typename TracedForm<Leaf>::Type{*next_++};
  }

 private:
  std::span<const hlo::Value>::iterator next_;
};

/// The part of a call's arguments on which a step's program depends: types and shapes of leaves; for leaves with a
/// batch's rows, the shape of a row.
class StepForm {
 public:
  struct Leaf {
    Shape shape;
    bool has_rows;
    bool is_known;  // false if a batch without rows does not have the shape of a row
  };

  /// Throws ShapeMismatch if tensors of a replica's batch differ in rows, or shapes differ between replicas.
  template <bool all_have_rows, class... Args>
  [[nodiscard]] static StepForm of(std::size_t replicas, const Args&... args) {
    StepForm form{&types_of<Args...>};
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      [[maybe_unused]] std::size_t number = 0;
      std::optional<std::size_t> rows;
      [[maybe_unused]] const auto add = [&]<class Leaf>(const Leaf& leaf, auto may_have_rows) {
        if constexpr (Reducible<Leaf>)
          form.add(replica, number++, Shape{}, false, rows);
        else
          form.add(replica, number++, leaf.shape(), may_have_rows && leaf.shape().rank() > 0, rows);
      };
      (for_each_leaf<all_have_rows>(replica, args, add), ...);
      form.rows_.push_back(rows.value_or(0));
    }
    return form;
  }

  [[nodiscard]] const std::vector<Leaf>& leaves() const noexcept { return leaves_; }
  /// The rows of each replica's batch.
  [[nodiscard]] const std::vector<std::size_t>& rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t most_rows() const { return *std::max_element(rows_.begin(), rows_.end()); }
  /// True if the batch has no rows on any replica.
  [[nodiscard]] bool is_empty() const {
    return most_rows() == 0 &&
           std::any_of(leaves_.begin(), leaves_.end(), [](const Leaf& leaf) { return leaf.has_rows; });
  }
  /// True if a program for `other` with `most` rows can run with these arguments.
  [[nodiscard]] bool fits(const StepForm& other, std::size_t most) const {
    return types_ == other.types_ && most_rows() <= most &&
           std::equal(leaves_.begin(), leaves_.end(), other.leaves_.begin(), other.leaves_.end(),
                      [](const Leaf& ours, const Leaf& theirs) {
                        return ours.has_rows == theirs.has_rows && (!ours.is_known || ours.shape == theirs.shape);
                      });
  }
  /// The shapes: "[4, 28, 28, 1], [4]".
  [[nodiscard]] std::string description() const {
    std::string shapes;
    for (const Leaf& leaf : leaves_)
      shapes +=
          concat(shapes.empty() ? "" : ", ", to_string(leaf.has_rows ? leaf.shape.stacked(most_rows()) : leaf.shape));
    return shapes.empty() ? "no tensors" : shapes;
  }

 private:
  template <class... Args>
  static constexpr char types_of{};

  explicit StepForm(const void* types) : types_(types) {}

  void add(std::size_t replica, std::size_t number, const Shape& shape, bool has_rows,
           std::optional<std::size_t>& rows) {
    if (number == leaves_.size())
      leaves_.push_back({has_rows ? shape.row() : shape, has_rows, !has_rows || shape[0] > 0});
    if (has_rows) {
      if (!rows) rows = shape[0];
      if (shape[0] != *rows)
        throw ShapeMismatch(
            "The tensors of a batch have different numbers of rows",
            concat("on replica ", replica, " one has ", *rows, " and another one ", shape[0]),
            "Give tensors with the same number of rows, and pass a value that is not a batch without a PerReplica");
      if (*rows == 0) return;
    }
    Leaf& leaf = leaves_[number];
    const Shape own = has_rows ? shape.row() : shape;
    if (!leaf.is_known) leaf = {own, has_rows, true};
    if (leaf.has_rows != has_rows || leaf.shape != own)
      throw ShapeMismatch("The replicas of a compiled step were given different shapes",
                          concat(to_string(leaf.shape), " and, on replica ", replica, ", ", to_string(own),
                                 has_rows ? ", of a row" : ""),
                          "Give every replica the same shapes, except for the number of rows of its batch");
  }

  const void* types_;
  std::vector<Leaf> leaves_ = {};
  std::vector<std::size_t> rows_ = {};
};

/// True for results of steps: traced arrays with a batch's rows on the first axis only, or nothing.
template <class Result>
inline constexpr bool is_step_result = TracedValue<Result> || std::is_void_v<Result>;
template <class T, std::size_t First, std::size_t... Extents>
inline constexpr bool is_step_result<hlo::Traced<T, First, Extents...>> = ((Extents != hlo::batch) && ...);
template <class... Members>
inline constexpr bool is_step_result<std::tuple<Members...>> = (is_step_result<Members> && ...);
template <class First, class Second>
inline constexpr bool is_step_result<std::pair<First, Second>> = is_step_result<First>&& is_step_result<Second>;
template <class Member, std::size_t N>
inline constexpr bool is_step_result<std::array<Member, N>> = is_step_result<Member>;

/// Calls `use(array)` for each traced array of a result, in order.
template <class Result, class Use>
void for_each_array(const Result& result, Use&& use) {
  if constexpr (Structure<Result>)
    for_each_member(result, [&](const auto& member) { for_each_array(member, use); });
  else
    use(result);
}

/// The result of a step on the host: `of(next, rows)` creates it from the buffers of `next()`, in order, for a replica
/// with `rows` rows.
template <class Result>
struct HostForm;
template <class T>
struct HostForm<hlo::Traced<T>> {
  template <class Next>
  [[nodiscard]] static hlo::PendingNumber<T> of(Next&& next, std::size_t) {
    return hlo::PendingNumber<T>{next()};
  }
};
template <class T, std::size_t First, std::size_t... Extents>
struct HostForm<hlo::Traced<T, First, Extents...>> {
  template <class Next>
  [[nodiscard]] static Tensor<T> of(Next&& next, std::size_t rows) {
    Tensor<T> values = next().template download<T>();
    if (First == hlo::batch) values.resize(values.shape().row().stacked(rows));
    return values;
  }
};
template <class T>
struct HostForm<hlo::Dynamic<T>> {
  template <class Next>
  [[nodiscard]] static Tensor<T> of(Next&& next, std::size_t) {
    return next().template download<T>();
  }
};
template <Structure Result>
struct HostForm<Result> {
  template <class Next>
  [[nodiscard]] static auto of(Next&& next, std::size_t rows) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (is_array<Result>) {
        using Host = decltype(HostForm<typename Result::value_type>::of(next, rows));
        return std::array<Host, sizeof...(I)>{
            (static_cast<void>(I), HostForm<typename Result::value_type>::of(next, rows))...};
      } else {
        using Host =
            typename StructureLike<Result,
                                   decltype(HostForm<std::tuple_element_t<I, Result>>::of(next, rows))...>::Type;
        return Host{HostForm<std::tuple_element_t<I, Result>>::of(next, rows)...};
      }
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>{});
  }
};

}  // namespace dist::detail
