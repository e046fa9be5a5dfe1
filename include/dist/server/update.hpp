/// What clients let a server do with the elements of a shard: functions of one element that are known by their type.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/element_update.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/io/element_type.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/error.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/shard_memory.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/slot_update.hpp>

namespace dist::server {

/// `update(old, given)` returns the new value, as dist::sum does.
template <class F, class T>
concept BinaryUpdate = Schedulable<F> && std::is_trivially_copyable_v<F> && requires(const F& update, T value) {
  { update(value, value) } -> std::same_as<T>;
};
/// `update(weight, gradient, slots)` returns the new weight and changes the element's values in as many slots as its
/// `slots` names: the functors of nn's optimizers.
template <class F, class T>
concept SlotsUpdate = Schedulable<F> && std::is_trivially_copyable_v<F> &&
    requires(const F& update, T value, T* slots) {
  { update(value, value, slots) } -> std::same_as<T>;
  F::slots.size();
};

/// A SlotsUpdate of two passes over all elements of a shard: `direction(gradient, slots)` makes the directions, and
/// `update(weight, direction, slots)` goes there, with the trust ratio as its `scale`. Weights lose the part `decay` before.
template <class F, class T>
concept DirectedUpdate = SlotsUpdate<F, T> && F::has_two_passes && requires(F update, T value, T* slots) {
  { update.direction(value, slots) } -> std::same_as<T>;
  update.scale = value;
  { update.decay } -> std::convertible_to<double>;
};

/// What a server does with the elements of a shard and values for them: one of these concepts.
template <class F, class T>
concept ServerUpdate = BinaryUpdate<F, T> || SlotsUpdate<F, T>;

/// Writes a slot, and leaves the elements as they are.
struct AssignSlot {
  static constexpr std::array<std::string_view, 1> slots{"assigned"};
  template <class T>
  T operator()(T weight, T value, T* slot) const {
    slot[0] = value;
    return weight;
  }
};

/// The update of this type whose members are in the archive. The functions for every type of update and element that the
/// program has are in a FunctionTable.
using ReadUpdate = std::unique_ptr<ElementUpdateBase>(ArchiveReader&);
/// Writes initial values of elements `first`, `first + 1` and so on of a variable to a new shard: a function of this type
/// in a FunctionTable reads a functor from the archive and calls it.
using FillShard = void(ArchiveReader&, std::uint64_t first, const ShardMemory&);

namespace detail {

/// So many are used at once where they cannot be used where they lie.
template <class T>
inline constexpr std::size_t elements_of_block = 4096 / sizeof(T);

/// Calls `use(first, elements)` for all elements whose bytes lie in the pieces one behind another, block by block. Those
/// that are aligned are used where they lie, the others from a copy of a block.
template <class T, class Use>
void for_each_block(BytesList pieces, Use&& use) {
  alignas(cache_line) T copy[elements_of_block<T>];
  auto* const copied_bytes = reinterpret_cast<std::byte*>(copy);
  std::size_t held = 0;  // bytes of the copy
  std::size_t first = 0;
  const auto use_copy = [&] {
    const std::size_t whole = held / sizeof(T);
    if (whole > 0) use(first, std::span<const T>{copy, whole});
    first += whole;
    held = 0;
  };
  for (Bytes piece : pieces) {
    while (!piece.empty()) {
      const std::size_t cut = held % sizeof(T);  // of an element that goes on in this piece
      const bool aligned = reinterpret_cast<std::uintptr_t>(piece.data()) % alignof(T) == 0;
      if (cut == 0 && aligned && piece.size() >= sizeof(T)) {
        use_copy();
        const std::size_t whole = piece.size() / sizeof(T);
        use(first, std::span<const T>{reinterpret_cast<const T*>(piece.data()), whole});
        first += whole;
        piece = piece.subspan(whole * sizeof(T));
      } else {
        const std::size_t taken = std::min(piece.size(), (cut == 0 ? sizeof copy - held : sizeof(T) - cut));
        std::memcpy(copied_bytes + held, piece.data(), taken);
        held += taken;
        piece = piece.subspan(taken);
        if (held == sizeof copy) use_copy();
      }
    }
  }
  use_copy();
}

template <class F, class T>
class TypedUpdate final : public ElementUpdateBase {
 public:
  explicit TypedUpdate(F function) : function_(std::move(function)) {}

  [[nodiscard]] io::ElementType type() const noexcept override { return io::element_type<T>; }
  [[nodiscard]] std::size_t slots() const noexcept override { return slot_count; }
  [[nodiscard]] bool needs_all() const noexcept override { return DirectedUpdate<F, T>; }
  void write(ArchiveWriter& archive) const override;

  void check([[maybe_unused]] BytesList values) const override {
    if constexpr (std::same_as<F, dist::detail::Divide> && std::integral<T>)
      for_each_block<T>(values, [](std::size_t, std::span<const T> block) {
        if (std::find(block.begin(), block.end(), T{0}) != block.end())
          throw StoreError(Problem::wrong_value, "A shard cannot be divided by the values",
                           "one of them is the integer 0", "Divide by numbers other than 0");
      });
  }

  void apply(const ShardMemory& shard, BytesList values) const override {
    const std::span<T> weights = shard.weights_as<T>();
    if constexpr (DirectedUpdate<F, T>) {
      std::vector<T> directions(weights.size());
      apply_to(std::span{directions}, dist::detail::direction_of(on(shard)), values);
      auto update = on(shard);
      update.functor.scale = static_cast<T>(dist::detail::trust_ratio(
          dist::detail::sum_of_squares(std::span<const T>{weights}),
          dist::detail::sum_of_squares(std::span<const T>{directions}), static_cast<double>(function_.decay)));
      dist::detail::update_range(update, 0, weights, std::span<const T>{directions});
    } else {
      apply_to(weights, on(shard), values);
    }
  }

  void apply_uniform(const ShardMemory& shard, BytesList value) const override {
    T given{};
    rpc::copy(value, std::as_writable_bytes(std::span{&given, 1}));
    std::array<T, elements_of_block<T>> block;
    block.fill(given);
    const std::span<T> weights = shard.weights_as<T>();
    const auto update = on(shard);
    for (std::size_t first = 0; first < weights.size(); first += block.size()) {
      const std::size_t count = std::min(block.size(), weights.size() - first);
      dist::detail::update_range(update, first, weights.subspan(first, count), std::span<const T>{block}.first(count));
    }
  }

  void apply_rows(const ShardMemory& shard, std::span<const std::int64_t> rows, BytesList values,
                  [[maybe_unused]] DuplicateRows repeats) const override {
    if constexpr (!std::same_as<T, bool>) {  // of bools, which are assigned, the last one counts
      if (repeats == DuplicateRows::summed) {
        std::vector<std::size_t> order(rows.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
        const auto again = [&](std::size_t a, std::size_t b) { return rows[a] == rows[b]; };
        if (std::adjacent_find(order.begin(), order.end(), again) != order.end())
          return apply_sums(shard, rows, order, values);
      }
    }
    const std::span<T> weights = shard.weights_as<T>();
    const auto update = on(shard);
    for_each_block<T>(values, [&](std::size_t first, std::span<const T> block) {
      while (!block.empty()) {
        const std::size_t column = first % shard.row_size;
        const std::size_t count = std::min(shard.row_size - column, block.size());
        const std::size_t at = static_cast<std::size_t>(rows[first / shard.row_size]) * shard.row_size + column;
        dist::detail::update_range(update, at, weights.subspan(at, count), block.first(count));
        first += count;
        block = block.subspan(count);
      }
    });
  }

 private:
  template <class Update>
  static void apply_to(std::span<T> elements, const Update& update, BytesList values) {
    for_each_block<T>(values, [&](std::size_t first, std::span<const T> block) {
      dist::detail::update_range(update, first, elements.subspan(first, block.size()), block);
    });
  }

  static constexpr bool with_slots = SlotsUpdate<F, T>;
  static constexpr std::size_t slot_count = [] {
    if constexpr (with_slots)
      return F::slots.size();
    else
      return std::size_t{0};
  }();

  /// The update as one of elements that are counted.
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

  /// `order` are the numbers of the rows, by the rows of the shard and then in the order given.
  void apply_sums(const ShardMemory& shard, std::span<const std::int64_t> rows, std::span<const std::size_t> order,
                  BytesList values) const requires(!std::same_as<T, bool>) {
    using Wide = Accumulator<T>;
    const std::size_t width = shard.row_size;
    std::vector<T> given(rows.size() * width);
    rpc::copy(values, std::as_writable_bytes(std::span{given}));
    const std::span<T> weights = shard.weights_as<T>();
    const auto update = on(shard);
    std::vector<Wide> sums(width);
    std::vector<T> rounded(width);
    for (std::size_t i = 0; i < order.size();) {
      const std::int64_t row = rows[order[i]];
      const T* const first = given.data() + order[i] * width;
      std::copy_n(first, width, sums.begin());
      for (++i; i < order.size() && rows[order[i]] == row; ++i)
        for (std::size_t column = 0; column < width; ++column)
          sums[column] = Sum{}(sums[column], static_cast<Wide>(given[order[i] * width + column]));
      for (std::size_t column = 0; column < width; ++column) rounded[column] = static_cast<T>(sums[column]);
      const std::size_t at = static_cast<std::size_t>(row) * width;
      dist::detail::update_range(update, at, weights.subspan(at, width), std::span<const T>{rounded});
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

/// Refuses, in a sentence, what is no update of elements of type `T` on a server, and says whether it is one.
template <class F, class T>
[[nodiscard]] constexpr bool require_server_update() {
  if constexpr (!dist::detail::require_schedulable<F>()) {
    return false;
  } else {
    constexpr bool copied = std::is_trivially_copyable_v<F>;
    constexpr bool updates = ServerUpdate<F, T>;
    constexpr bool is_bool = std::same_as<T, bool> && !std::same_as<F, dist::detail::Assign>;
    static_assert(copied, "an update of elements is trivially copyable: let it hold numbers, not containers");
    static_assert(!copied || updates || is_bool,
                  "an update on a server is called as update(old, given), or as update(weight, gradient, slots) with "
                  "names of its slots in a static array slots, and returns the new value in just the elements' type; "
                  "see the concept dist::server::ServerUpdate");
    static_assert(!is_bool,
                  "a bool variable can be assigned only: bools are not added, subtracted or compared; count in an "
                  "integer type");
    return copied && updates && !is_bool;
  }
}

/// Makes what `ElementUpdateBase::write` has written.
[[nodiscard]] std::unique_ptr<ElementUpdateBase> get_update(ArchiveReader& archive);

template <class F, class T>
concept FillsRange = requires(F& fill, std::uint64_t first, std::span<T> elements) {
  fill(first, elements);
};
template <class F, class T>
concept FillsElement = requires(F& fill, std::uint64_t index) {
  { fill(index) } -> std::convertible_to<T>;
};

}  // namespace detail

/// A function that a server calls for the initial values of a variable: `fill(first, elements)` or `fill(i)` (spec J07).
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
    static_assert(
        fills,
        "initial values are made by fill(first, elements), with the number of the first element in the variable "
        "and a std::span of the elements' type, or by fill(i), which returns element i");
    return fills;
  }
}

}  // namespace detail

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/update.ipp>
#endif
