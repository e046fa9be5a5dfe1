#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/vectors.hpp>

namespace dist {

namespace detail {
/// Callable with an index and two values of type T; returns a T.
template <class U, class T>
concept CalledAsUpdate = requires(const U update, std::size_t i, T weight, T gradient) {
  { update(i, weight, gradient) } -> std::same_as<T>;
};
}  // namespace detail

/// The update of one element when gradients are applied: `update(i, weight, gradient)` returns the new value of element
/// `i`. It is called once per element, in any order and concurrently, from threads or kernels. It is copied there, so
/// it must be trivially copyable, with pointers to other data, such as optimizer slots.
///
///   replica.reduce_and_apply(dist::sum, gradient, weights, [rate](std::size_t, float weight, float slope) {
///     return weight - rate * slope;
///   });
template <class U, class T>
concept ElementUpdate = std::is_trivially_copyable_v<U> && detail::CalledAsUpdate<U, T>;

/// Elements per 16 bytes, which a kernel loads and stores at once.
template <class T>
inline constexpr std::size_t pack_elements = 16 / sizeof(T);

/// Consecutive elements, aligned to 16 bytes.
template <class T>
struct alignas(16) Pack {
  T element[pack_elements<T>];  ///< 16 bytes of elements

  /// Reads consecutive elements. `from` must be aligned to 16 bytes.
  [[nodiscard]] DIST_HD static Pack load(const T* from) { return *reinterpret_cast<const Pack*>(from); }
  /// Writes the elements to `to`, which must be aligned to 16 bytes.
  DIST_HD void store(T* to) const { *reinterpret_cast<Pack*>(to) = *this; }
};

/// An update with a vectorised version for the pack at element `i`, which can access its own data in packs, too.
template <class U, class T>
concept PackUpdate = ElementUpdate<U, T> &&
    requires(const U update, std::size_t i, Pack<T> weights, Pack<T> gradients) {
  { update.pack(i, weights, gradients) } -> std::same_as<Pack<T>>;
};

/// Returns the new values of the pack at element `i`.
template <class T, ElementUpdate<T> Update>
[[nodiscard]] DIST_HD Pack<T> updated_pack(const Update& update, std::size_t i, Pack<T> weights, Pack<T> gradients) {
  if constexpr (PackUpdate<Update, T>) {
    return update.pack(i, weights, gradients);
  } else {
    for (std::size_t lane = 0; lane < pack_elements<T>; ++lane)
      weights.element[lane] = update(i + lane, weights.element[lane], gradients.element[lane]);
    return weights;
  }
}

namespace detail {

struct VisitNothing {
  template <class Part>
  void operator()(const Part&, IndexRange) const {}
};

}  // namespace detail

/// An update with parts for ranges of elements, such as the parameters of a network: `for_each_part(range, visit)`
/// calls `visit(part, its_range)` in order. Each part is an ElementUpdate; no lookup per element is needed.
template <class U>
concept UpdateOfParts = requires(const U update, IndexRange range, detail::VisitNothing visit) {
  update.for_each_part(range, visit);
};

namespace detail {

template <class Update, class Visit>
DIST_ALWAYS_INLINE void for_each_part(const Update& update, IndexRange range, Visit&& visit) {
  if constexpr (UpdateOfParts<Update>)
    update.for_each_part(range, visit);
  else
    visit(update, range);
}

/// weights[i] = update(first + i, weights[i], gradients[i]): a vectorised loop, for the target of the function it is
/// inlined into.
template <class T, ElementUpdate<T> Update>
DIST_ALWAYS_INLINE void update_block(const Update& update, std::size_t first, std::span<T> weights,
                                     std::span<const T> gradients) {
  const auto update_part = [&](const auto part, IndexRange range) DIST_INLINE_LAMBDA {  // a copy, in registers
    T* const weight = weights.data() + (range.begin - first);
    const T* const gradient = gradients.data() + (range.begin - first);
    const std::size_t size = range.size();
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < size; ++i) weight[i] = part(range.begin + i, weight[i], gradient[i]);
  };
  for_each_part(update, {first, first + weights.size()}, update_part);
}

/// Calls `update_block`, compiled for the widest vectors of the processor.
template <class T, ElementUpdate<T> Update>
void update_range(const Update& update, std::size_t first, std::span<T> weights, std::span<const T> gradients) {
  with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA { update_block(update, first, weights, gradients); });
}

/// The packs of these elements; the last one may be incomplete. An empty range may begin within a pack.
template <class T>
[[nodiscard]] constexpr IndexRange packs_of(IndexRange elements) noexcept {
  constexpr std::size_t lanes = pack_elements<T>;
  return {(elements.begin + lanes - 1) / lanes, (elements.end + lanes - 1) / lanes};
}
template <class T>
[[nodiscard]] bool is_aligned_for_packs(const T* first) noexcept {
  return reinterpret_cast<std::uintptr_t>(first) % sizeof(Pack<T>) == 0;
}

/// Updates one pack in a device kernel.
template <class T, class Update>
struct UpdateInPlace {
  Update update;
  const T* gradients;
  T* weights;
  std::size_t count;
  bool aligned;

  DIST_HD void operator()(std::size_t pack) const {
    constexpr std::size_t lanes = pack_elements<T>;
    const std::size_t first = pack * lanes;
    if (aligned && first + lanes <= count) {
      updated_pack(update, first, Pack<T>::load(weights + first), Pack<T>::load(gradients + first))
          .store(weights + first);
    } else {
      for (std::size_t i = first; i < count && i < first + lanes; ++i) weights[i] = update(i, weights[i], gradients[i]);
    }
  }
};

/// Updates all elements of a replica; in its queue if the host cannot access the memory.
template <class Queue, class T, ElementUpdate<T> Update>
void update_on(const Queue&, const Update& update, std::span<T> weights, std::type_identity_t<std::span<const T>> by) {
  update_range(update, 0, weights, by);
}
template <class Queue, class T, MemorySpace Where, ElementUpdate<T> Update>
void update_on(const Queue& queue, const Update& update, DeviceSpan<T, Where> weights,
               std::type_identity_t<DeviceSpan<const T, Where>> by) {
  const bool aligned = is_aligned_for_packs(weights.data()) && is_aligned_for_packs(by.data());
  const UpdateInPlace<T, Update> body{update, by.data(), weights.data(), weights.size(), aligned};
  queue.for_each(packs_of<T>({0, weights.size()}), body);
}

/// An update whose element numbers start at `offset`.
template <class Update>
struct ShiftedUpdate {
  Update update;
  std::size_t offset;

  template <class T>
  DIST_HD DIST_ALWAYS_INLINE T operator()(std::size_t i, T weight, T gradient) const {
    return update(offset + i, weight, gradient);
  }
  template <class Visit>
  DIST_ALWAYS_INLINE void for_each_part(IndexRange range, Visit&& visit) const {
    const auto visit_shifted = [&](const auto& part, IndexRange all_values) DIST_INLINE_LAMBDA {
      visit(ShiftedUpdate<std::remove_cvref_t<decltype(part)>>{part, offset},
            IndexRange{all_values.begin - offset, all_values.end - offset});
    };
    detail::for_each_part(update, {range.begin + offset, range.end + offset}, visit_shifted);
  }
};

/// Fails to compile, with an explanation, unless `Update` is an update of elements of type T.
template <class Update, class T>
[[nodiscard]] constexpr bool require_element_update() {
  constexpr bool copied = std::is_trivially_copyable_v<Update>;
  constexpr bool updates = CalledAsUpdate<Update, T>;
  static_assert(copied,
                "an update is copied to the memory of the elements, so it must be trivially copyable: let it hold "
                "numbers, pointers and views, not containers");
  static_assert(updates || !copied,
                "an update is called as update(i, weight, gradient), with an index and two values of the elements' "
                "type, and returns the new weight in exactly that type; see the concept dist::ElementUpdate");
  return copied && updates;
}

}  // namespace detail

}  // namespace dist
