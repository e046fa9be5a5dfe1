/// Batches in the memory of the devices that process them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/per_replica.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/any_pass.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/example.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

namespace detail {

/// Views in memory space `Where` in place of views in host memory.
template <class Views, MemorySpace Where>
struct ViewsIn;
template <class T, MemorySpace Where>
struct ViewsIn<TensorView<T>, Where> : std::type_identity<TensorView<const T, Where>> {};
template <HasParts Views, MemorySpace Where>
struct ViewsIn<Views, Where> {
  template <class Part>
  using There = typename ViewsIn<Part, Where>::type;
  using type = WithParts<Views, There>;
};

/// Calls `visit(view, view there)` for each array of a batch, in order.
template <class T, class There, class Visit>
void for_each_array(TensorView<const T> view, There& there, const Visit& visit) {
  visit(view, there);
}
template <class Views, class There, class Visit>
void for_each_array(const Views& views, There& there, const Visit& visit) {
  over_parts<Views>([&]<std::size_t... I>() { (for_each_array(part_of<I>(views), part_of<I>(there), visit), ...); });
}

/// Returns the size of an array in a slot, rounded up to the alignment of device memory.
[[nodiscard]] constexpr std::size_t room_for(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

/// The input rings of a process's replicas, one set per pass, reused by later passes.
template <class Device>
class InputRings {
 public:
  using Rings = std::vector<std::unique_ptr<typename Device::InputRing>>;

  InputRings(const typename Device::Queues& queues, std::size_t replicas, std::size_t slots)
      : queues_(&queues), replicas_(replicas), slots_(slots) {}

  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  [[nodiscard]] typename Device::Queue queue(std::size_t replica) const { return (*queues_)[replica]; }

  /// Returns rings for one pass, which returns them when it ends.
  [[nodiscard]] static std::shared_ptr<Rings> take(const std::shared_ptr<InputRings>& all) {
    return {new Rings(all->idle_or_new()), [all](Rings* rings) {
              all->give_back(std::move(*rings));
              delete rings;
            }};
  }
  /// Marks that all work on the last element has been enqueued.
  void retire(Rings& rings) const {
    for (std::size_t replica = 0; replica < replicas_; ++replica) rings[replica]->retire(queue(replica));
  }

 private:
  [[nodiscard]] Rings idle_or_new() {
    Rings rings;
    const std::lock_guard lock{mutex_};
    if (!idle_.empty()) {
      rings = std::move(idle_.back());
      idle_.pop_back();
    }
    while (rings.size() < replicas_)
      rings.push_back(std::make_unique<typename Device::InputRing>(queue(rings.size()), slots_));
    return rings;
  }
  /// Keeps the rings for reuse. On failure they are destroyed, after their enqueued work.
  void give_back(Rings rings) noexcept {
    try {
      retire(rings);
      const std::lock_guard lock{mutex_};
      idle_.push_back(std::move(rings));
    } catch (...) {
    }
  }

  const typename Device::Queues* queues_;
  std::size_t replicas_;
  std::size_t slots_;
  std::mutex mutex_;
  std::vector<Rings> idle_;
};

/// A batch, or one per replica, as views of host memory.
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

template <class Element>
inline constexpr bool is_uploaded = HasRows<Element>;
template <class Views>
inline constexpr bool is_uploaded<PerReplica<Views>> = HasRows<Views>;

/// One pass over batches of type `Host`, independent of the type of the dataset.
template <class Host, class Device>
class UploadedSteps {
 public:
  using Element = typename Uploads<Host>::template In<typename Device::Space>;

  UploadedSteps(std::unique_ptr<AnyPass> upstream, std::shared_ptr<InputRings<Device>> all)
      : upstream_(std::move(upstream)), all_(std::move(all)), rings_(InputRings<Device>::take(all_)) {}

  /// Assigns the next element, or returns false at the end. Throws OutOfMemory, and DeadlineExceeded if a step whose
  /// memory is needed does not end.
  bool next(Element& element) {
    all_->retire(*rings_);
    if (!upstream_->next(&element_)) return false;
    for (std::size_t replica = 0; replica < rings_->size(); ++replica)
      upload(Uploads<Host>::of(element_, replica), Uploads<Host>::of(element, replica, rings_->size()), replica);
    ++given_;
    return true;
  }
  /// Returns the next step, or nothing at the end (spec I22).
  [[nodiscard]] std::optional<Element> get_next_as_optional() { return next_of<Element>(*this); }
  /// See Resumable.
  [[nodiscard]] std::uint64_t position() const noexcept { return given_; }

 protected:
  /// Sets the number of elements that the pass has returned.
  void set_position(std::uint64_t given) noexcept { given_ = given; }

 private:
  template <class Views, class There>
  void upload(const Views& views, There& there, std::size_t replica) {
    typename Device::InputRing& ring = *(*rings_)[replica];
    std::size_t bytes = 0;
    for_each_array(views, there, [&](auto view, auto&) { bytes += room_for(view.elements().size_bytes()); });
    std::byte* const host = ring.prepare(bytes);
    std::size_t at = 0;
    for_each_array(views, there, [&](auto view, auto& view_there) {
      using T = std::remove_const_t<typename decltype(view)::Element>;
      const std::size_t size = view.elements().size_bytes();
      if (size > 0) std::memcpy(host + at, view.data(), size);
      view_there = {reinterpret_cast<const T*>(ring.destination() + at), view.shape()};
      at += room_for(size);
    });
    ring.upload(all_->queue(replica));
  }

  std::unique_ptr<AnyPass> upstream_;
  Host element_{};
  std::shared_ptr<InputRings<Device>> all_;
  std::shared_ptr<typename InputRings<Device>::Rings> rings_;
  std::uint64_t given_ = 0;
};

}  // namespace detail

/// The parameter type of a replica function for batches of `D` in the memory of a strategy's devices: `data::BatchIn<D,
/// typename S::Device::Space>`.
template <class D, MemorySpace Where>
using BatchIn = typename detail::ViewsIn<BatchOf<D>, Where>::type;

/// The batches of `D`, copied to the memory of the replicas' devices while previous steps compute. An element consists
/// of device views that are valid until the next step; at contract level 2 (DIST_CONTRACT_LEVEL) all bits of expired
/// views are one. The host waits only if all slots are in flight. Made by `uploaded`.
///
/// The strategy that owns the queues must outlive every pass.
template <Dataset D, class Device>
class UploadedDataset : public DatasetRange<UploadedDataset<D, Device>> {
  using Steps = detail::UploadedSteps<ElementOf<D>, Device>;

 public:
  using Element = typename Steps::Element;
  static constexpr bool lends_elements = true;

  /// The dataset that `uploaded` makes. `queues` belong to the strategy; each replica has `slots` input buffers.
  UploadedDataset(D dataset, const typename Device::Queues& queues, std::size_t replicas, std::size_t slots)
      : dataset_(std::move(dataset)), rings_(std::make_shared<detail::InputRings<Device>>(queues, replicas, slots)) {}

  /// One pass over the dataset.
  class Iterator : public Steps {
   public:
    Iterator(const UploadedDataset& dataset, std::uint64_t epoch)
        : Iterator(std::make_unique<Pass>(dataset.dataset_, epoch), dataset.rings_) {}

    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      pass_->seek(position);
      this->set_position(position);
    }

   private:
    using Pass = detail::PassOf<D>;

    Iterator(std::unique_ptr<Pass> pass, std::shared_ptr<detail::InputRings<Device>> rings)
        : Iterator{*pass, std::move(pass), std::move(rings)} {}  // braces: in this order
    Iterator(Pass& pass, std::unique_ptr<detail::AnyPass> owned, std::shared_ptr<detail::InputRings<Device>> rings)
        : Steps(std::move(owned), std::move(rings)), pass_(&pass) {}

    Pass* pass_;  // owned by Steps
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const { return dataset_.cardinality(); }
  /// The number of replicas of this worker.
  [[nodiscard]] std::size_t num_replicas() const noexcept { return rings_->replicas(); }

 private:
  D dataset_;
  std::shared_ptr<detail::InputRings<Device>> rings_;
};

template <class Device, class D>
auto uploaded(D dataset, const typename Device::Queues& queues, std::size_t replicas, std::size_t ahead) {
  if constexpr (detail::is_uploaded<ElementOf<D>>)
    return UploadedDataset<D, Device>{std::move(dataset), queues, replicas, ahead + 1};
  else
    return dataset;
}

}  // namespace dist::data
