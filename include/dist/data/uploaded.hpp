/// Batches in the memory of the devices that work on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/per_replica.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/example.hpp>
#include <dist/data/poison.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

namespace detail {

/// Views in `Where` instead of the host's memory.
template <class Views, MemorySpace Where>
struct ViewsIn;
template <class T, MemorySpace Where>
struct ViewsIn<TensorView<T>, Where> : std::type_identity<TensorView<const T, Where>> {};
template <class T, MemorySpace Where>
struct ViewsIn<TensorView<const T>, Where> : std::type_identity<TensorView<const T, Where>> {};
template <class X, class Y, MemorySpace Where>
struct ViewsIn<Example<X, Y>, Where>
    : std::type_identity<Example<typename ViewsIn<X, Where>::type, typename ViewsIn<Y, Where>::type>> {};
template <class... Ts, MemorySpace Where>
struct ViewsIn<std::tuple<Ts...>, Where> : std::type_identity<std::tuple<typename ViewsIn<Ts, Where>::type...>> {};
template <class A, class B, MemorySpace Where>
struct ViewsIn<std::pair<A, B>, Where>
    : std::type_identity<std::pair<typename ViewsIn<A, Where>::type, typename ViewsIn<B, Where>::type>> {};
template <class T, std::size_t size, MemorySpace Where>
struct ViewsIn<std::array<T, size>, Where> : std::type_identity<std::array<typename ViewsIn<T, Where>::type, size>> {};

/// Calls `visit(view, view there)` for the arrays of a batch, in their order.
template <class T, class There, class Visit>
void for_each_array(TensorView<const T> view, There& there, const Visit& visit) {
  visit(view, there);
}
template <class Views, class There, class Visit>
void for_each_array(const Views& views, There& there, const Visit& visit) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (for_each_array(part_of<I>(views), part_of<I>(there), visit), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Parts<Views>>>{});
}

/// The room that an array takes in a slot, so that each begins as memory of devices does.
[[nodiscard]] constexpr std::size_t room_for(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

/// The rings of the replicas of a process.
template <class Device>
using InputRings = std::vector<std::unique_ptr<typename Device::InputRing>>;

/// Rings that no pass uses, for the next one: a pass needs as many slots as the last, of the same size.
template <class Device>
class IdleRings {
 public:
  [[nodiscard]] std::optional<InputRings<Device>> take() {
    const std::lock_guard lock{mutex_};
    if (idle_.empty()) return std::nullopt;
    std::optional<InputRings<Device>> rings(std::move(idle_.back()));
    idle_.pop_back();
    return rings;
  }
  void give_back(InputRings<Device> rings) {
    const std::lock_guard lock{mutex_};
    idle_.push_back(std::move(rings));
  }

 private:
  std::mutex mutex_;
  std::vector<InputRings<Device>> idle_;
};

/// A batch, or one for each replica, as views of the host's memory.
template <class Element>
struct Uploads {
  template <class Where>
  using In = typename ViewsIn<RowsOf<Element>, Where>::type;
  static RowsOf<Element> of(const Element& element, std::size_t) { return rows_of(element, 0, row_count(element)); }
  template <class There>
  static There& of(There& there, std::size_t, std::size_t) {
    return there;
  }
};
template <class Views>
struct Uploads<PerReplica<Views>> {
  template <class Where>
  using In = PerReplica<typename ViewsIn<Views, Where>::type>;
  static const Views& of(const PerReplica<Views>& element, std::size_t replica) { return element[replica]; }
  template <class There>
  static auto& of(There& there, std::size_t replica, std::size_t replicas) {
    if (there.size() != replicas) there = There(replicas);
    return there[replica];
  }
};

/// Whether elements are batches, or one for each replica.
template <class Element>
inline constexpr bool is_uploaded = HasRows<Element>;
template <class Views>
inline constexpr bool is_uploaded<PerReplica<Views>> = HasRows<Views>;

}  // namespace detail

/// What a replica function gets of a batch of `D` whose strategy's devices have their memory in `Where`, to be named:
/// `data::BatchIn<D, typename S::Device::Space>`.
template <class D, MemorySpace Where>
using BatchIn = typename detail::ViewsIn<BatchOf<D>, Where>::type;

/// The batches of `D`, copied to the memory of the replicas' devices while the steps before compute: an element holds
/// views there, which stay valid until the next step; at contract level 2 (DIST_CONTRACT_LEVEL) every bit of them is one
/// from then on. The host waits for steps where as many batches are under way as there are slots, and never else. Made by
/// `uploaded`.
///
/// The strategy of the queues outlives every pass.
template <Dataset D, class Device>
class UploadedDataset : public DatasetRange<UploadedDataset<D, Device>> {
  using Uploads = detail::Uploads<ElementOf<D>>;
  using Idle = detail::IdleRings<Device>;

 public:
  using Element = typename Uploads::template In<typename Device::Space>;
  static constexpr bool lends_elements = true;

  UploadedDataset(D dataset, const typename Device::Queues& queues, std::size_t replicas, std::size_t slots)
      : dataset_(std::move(dataset)), queues_(&queues), replicas_(replicas), slots_(slots) {}

  class Iterator {
   public:
    Iterator(const UploadedDataset& dataset, std::uint64_t epoch)
        : dataset_(&dataset), upstream_(dataset.dataset_.iterate(epoch)), idle_(dataset.idle_) {
      auto rings = idle_->take();
      if (rings) {
        rings_ = std::move(*rings);
        return;
      }
      for (std::size_t replica = 0; replica < dataset.replicas_; ++replica)
        rings_.push_back(std::make_unique<typename Device::InputRing>(queue(replica), dataset.slots_));
    }
    Iterator(Iterator&&) = default;
    Iterator& operator=(Iterator&& other) noexcept {
      std::swap(dataset_, other.dataset_);
      std::swap(upstream_, other.upstream_);
      std::swap(element_, other.element_);
      std::swap(idle_, other.idle_);
      std::swap(rings_, other.rings_);
      return *this;
    }
    ~Iterator() {
      if (rings_.empty()) return;
      try {
        retire();
        idle_->give_back(std::move(rings_));
      } catch (...) {
        // The rings go with the pass: what they had put ends before their memory does.
      }
    }

    /// As of `D`. Throws DeadlineExceeded where a step does not end whose memory is needed, and OutOfMemory.
    bool next(Element& element) {
      retire();
      if (!upstream_.next(element_)) return false;
      for (std::size_t replica = 0; replica < rings_.size(); ++replica)
        upload(Uploads::of(element_, replica), Uploads::of(element, replica, rings_.size()), replica);
      return true;
    }
    /// See Resumable.
    [[nodiscard]] std::uint64_t position() const noexcept requires Resumable<IteratorOf<D>> {
      return upstream_.position();
    }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> { upstream_.seek(position); }
    /// The next step, or none at the end (spec I22).
    [[nodiscard]] std::optional<Element> get_next_as_optional() { return next_of<Element>(*this); }

   private:
    [[nodiscard]] typename Device::Queue queue(std::size_t replica) const { return (*dataset_->queues_)[replica]; }

    /// All that uses the last element was put.
    void retire() {
      for (std::size_t replica = 0; replica < rings_.size(); ++replica) rings_[replica]->retire(queue(replica));
    }

    template <class Views, class There>
    void upload(const Views& views, There& there, std::size_t replica) {
      typename Device::InputRing& ring = *rings_[replica];
      std::size_t bytes = 0;
      detail::for_each_array(views, there,
                             [&](auto view, auto&) { bytes += detail::room_for(view.elements().size_bytes()); });
      std::byte* const host = ring.prepare(bytes);
      std::size_t at = 0;
      detail::for_each_array(views, there, [&](auto view, auto& view_there) {
        using T = std::remove_const_t<typename decltype(view)::Element>;
        const std::size_t size = view.elements().size_bytes();
        if (size > 0) std::memcpy(host + at, view.data(), size);
        view_there = {reinterpret_cast<const T*>(ring.destination() + at), view.shape()};
        at += detail::room_for(size);
      });
      ring.upload(queue(replica));
    }

    const UploadedDataset* dataset_;
    IteratorOf<D> upstream_;
    ElementOf<D> element_{};
    std::shared_ptr<Idle> idle_;
    detail::InputRings<Device> rings_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const { return dataset_.cardinality(); }
  [[nodiscard]] std::size_t num_replicas() const noexcept { return replicas_; }

 private:
  D dataset_;
  const typename Device::Queues* queues_;
  std::size_t replicas_;
  std::size_t slots_;
  std::shared_ptr<Idle> idle_ = std::make_shared<Idle>();
};

template <class Device, class D>
auto uploaded(D dataset, const typename Device::Queues& queues, std::size_t replicas, std::size_t ahead) {
  if constexpr (detail::is_uploaded<ElementOf<D>>)
    return UploadedDataset<D, Device>{std::move(dataset), queues, replicas, ahead + 1};
  else
    return dataset;
}

}  // namespace dist::data
