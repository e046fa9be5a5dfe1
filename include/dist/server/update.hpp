/// Updates of the elements of a shard that clients can request: functors for one element, identified by their type.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/element_update.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/io/element_type.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/registry.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/slot_update.hpp>

namespace dist::server {

/// `update(old, given)` returns the new value, like dist::sum.
template <class F, class T>
concept BinaryUpdate = Schedulable<F> && std::is_trivially_copyable_v<F> && requires(const F& update, T value) {
  { update(value, value) } -> std::same_as<T>;
};
/// `update(weight, gradient, slots)` returns the new weight and updates the element's slots, which are named in
/// `F::slots`: the functors of nn's optimizers.
template <class F, class T>
concept SlotsUpdate = Schedulable<F> && std::is_trivially_copyable_v<F> &&
    requires(const F& update, T value, T* slots) {
  { update(value, value, slots) } -> std::same_as<T>;
  F::slots.size();
};

/// A SlotsUpdate in two passes over a shard: `direction(gradient, slots)` computes the directions, and `update(weight,
/// direction, slots)` applies them, scaled by the trust ratio `scale`. `decay` is the rate of weight decay.
template <class F, class T>
concept DirectedUpdate = SlotsUpdate<F, T> && F::has_two_passes && requires(F update, T value, T* slots) {
  { update.direction(value, slots) } -> std::same_as<T>;
  update.scale = value;
  { update.decay } -> std::convertible_to<double>;
};

/// An update that a server can apply: one of the concepts above.
template <class F, class T>
concept ServerUpdate = BinaryUpdate<F, T> || SlotsUpdate<F, T>;

/// Writes a slot, and keeps the elements.
struct AssignSlot {
  static constexpr std::array<std::string_view, 1> slots{"assigned"};
  template <class T>
  T operator()(T weight, T value, T* slot) const {
    slot[0] = value;
    return weight;
  }
};

/// Reads an update from an archive. A FunctionTable has one such function for each type of update and element.
using ReadUpdate = std::unique_ptr<ElementUpdateBase>(ArchiveReader&);
/// Writes the initial values of a new shard, elements `first`, `first + 1` and so on of a variable, with a functor from
/// the archive. A FunctionTable has one such function for each type.
using FillShard = void(ArchiveReader&, std::uint64_t first, const ShardMemory&);

namespace detail {

/// Sums the given rows of `values` in their order into `result`.
template <class T>
void sum_rows(const std::byte* values, std::span<const std::size_t> rows, std::size_t width, std::byte* result) {
  using Kernels = dist::detail::ReductionKernels<T, Sum>;
  constexpr std::size_t most = 256;
  Accumulator<T> sums[most];
  std::byte* const sum = reinterpret_cast<std::byte*>(sums);
  for (std::size_t first = 0; first < width; first += most) {
    const std::size_t count = std::min(most, width - first);
    const auto given = [&](std::size_t row) { return values + (row * width + first) * sizeof(T); };
    Kernels::widen(sum, given(rows[0]), count);
    for (const std::size_t row : rows.subspan(1)) Kernels::combine(sum, given(row), count);
    Kernels::finish(result + first * sizeof(T), sum, nullptr, count, 0);
  }
}

template <class F, class T>
class TypedUpdate final : public ElementUpdateBase {
 public:
  using Function = F;

  explicit TypedUpdate(F function) : function_(std::move(function)) {}

  [[nodiscard]] io::ElementType type() const noexcept override { return io::element_type<T>; }
  [[nodiscard]] std::size_t slots() const noexcept override { return slot_count; }
  [[nodiscard]] bool needs_all() const noexcept override { return DirectedUpdate<F, T>; }
  void write(ArchiveWriter& archive) const override;

  void check([[maybe_unused]] BytesList values) const override {
    if constexpr (std::same_as<F, dist::detail::Divide> && std::integral<T>)
      for_each_block(values, sizeof(T), [](std::size_t, const std::byte* block, std::size_t count) {
        const std::span elements{reinterpret_cast<const T*>(block), count};
        if (std::find(elements.begin(), elements.end(), T{0}) != elements.end())
          throw StoreError(Problem::wrong_value, "A shard cannot be divided by the values",
                           "one of them is the integer 0", "Divide by numbers other than 0");
      });
  }

 private:
  void update(const ShardMemory& shard, std::size_t first, const std::byte* values, std::size_t count) const override {
    const std::span<T> weights = shard.weights_as<T>().subspan(first, count);
    const std::span given{reinterpret_cast<const T*>(values), count};
    auto update = on(shard);
    if constexpr (DirectedUpdate<F, T>) {
      std::vector<T> directions(count);
      dist::detail::update_range(dist::detail::direction_of(update), first, std::span{directions}, given);
      update.functor.scale = static_cast<T>(dist::detail::trust_ratio(
          dist::detail::sum_of_squares(std::span<const T>{weights}),
          dist::detail::sum_of_squares(std::span<const T>{directions}), static_cast<double>(function_.decay)));
      dist::detail::update_range(update, first, weights, std::span<const T>{directions});
    } else {
      dist::detail::update_range(update, first, weights, given);
    }
  }
  [[nodiscard]] SumRows* sum_rows() const noexcept override {
    if constexpr (std::same_as<T, bool>)
      return nullptr;
    else
      return &detail::sum_rows<T>;
  }

  static constexpr bool with_slots = SlotsUpdate<F, T>;
  static constexpr std::size_t slot_count = [] {
    if constexpr (with_slots)
      return F::slots.size();
    else
      return std::size_t{0};
  }();

  /// Returns the update for elements that are addressed by index.
  [[nodiscard]] auto on(const ShardMemory& shard) const {
    if constexpr (with_slots) {
      SlotUpdate<F, T> update{function_, {}};
      for (std::size_t slot = 0; slot < slot_count; ++slot)
        update.slots[slot] = reinterpret_cast<T*>(shard.slots[slot]);
      return update;
    } else {
      return dist::detail::WriteElement<F>{function_};
    }
  }

  F function_;
};

template <class F, class T>
std::unique_ptr<ElementUpdateBase> read_update(ArchiveReader& archive) {
  return std::make_unique<TypedUpdate<F, T>>(archive.get<F>());
}
template <class F, class T>
void TypedUpdate<F, T>::write(ArchiveWriter& archive) const {
  archive.put(FunctionTable<ReadUpdate>::number<&read_update<F, T>>()).put(function_);
}

/// Fails to compile with an explanation if a server cannot apply `F` to elements of type `T`.
template <class F, class T>
[[nodiscard]] constexpr bool require_server_update() {
  if constexpr (!dist::detail::require_schedulable<F>()) {
    return false;
  } else {
    constexpr bool copied = std::is_trivially_copyable_v<F>;
    constexpr bool updates = ServerUpdate<F, T>;
    constexpr bool is_bool = std::same_as<T, bool> && !std::same_as<F, dist::detail::Assign>;
    static_assert(copied, "an update of elements must be trivially copyable: store numbers in it, not containers");
    static_assert(!copied || updates || is_bool,
                  "an update on a server must be callable as update(old, given), or as update(weight, gradient, slots) "
                  "with the names of its slots in a static array slots, and must return the new value in exactly the "
                  "element type; see the concept dist::server::ServerUpdate");
    static_assert(!is_bool,
                  "a bool variable can only be assigned: bools are not added, subtracted or compared; count in an "
                  "integer type");
    return copied && updates && !is_bool;
  }
}

/// Reads an update that `ElementUpdateBase::write` has written.
[[nodiscard]] inline std::unique_ptr<ElementUpdateBase> get_update(ArchiveReader& archive) {
  return FunctionTable<ReadUpdate>::find(archive.get<FunctionId>())(archive);
}

template <class F, class T>
concept FillsRange = requires(F& fill, std::uint64_t first, std::span<T> elements) {
  fill(first, elements);
};
template <class F, class T>
concept FillsElement = requires(F& fill, std::uint64_t index) {
  { fill(index) } -> std::convertible_to<T>;
};

}  // namespace detail

/// A functor for the initial values of a variable on a server: `fill(first, elements)` or `fill(i)` (spec J07).
template <class F, class T>
concept MakesElements =
    Schedulable<F> && !std::is_arithmetic_v<F> && (detail::FillsRange<F, T> || detail::FillsElement<F, T>);

namespace detail {

template <class F, class T>
void fill_shard(ArchiveReader& archive, std::uint64_t first, const ShardMemory& shard) {
  F fill = archive.get<F>();
  const std::span<T> elements = shard.weights_as<T>();
  if constexpr (FillsRange<F, T>) {
    fill(first, elements);
  } else {
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<T>(fill(first + i));
  }
}

template <class F, class T>
[[nodiscard]] constexpr bool require_fill() {
  if constexpr (!dist::detail::require_schedulable<F>()) {
    return false;
  } else {
    constexpr bool fills = FillsRange<F, T> || FillsElement<F, T>;
    static_assert(fills,
                  "initial values need a callable fill(first, elements), with the index of the first element in the "
                  "variable and a std::span of the element type, or fill(i), which returns element i");
    return fills;
  }
}

}  // namespace detail

}  // namespace dist::server
