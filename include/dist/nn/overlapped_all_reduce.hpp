#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/replica_context.hpp>  // and with it the options of communication, and packing
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/future.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>
#include <dist/core/trace.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/parameter.hpp>

namespace dist::nn {

/// A strategy with reductions in the background: `background()` creates them, on all processes, outside replica
/// functions.
template <class S>
concept ReducesInBackground = requires(S& strategy, float* const* copies, ProfilerLabel label) {
  { strategy.background()->start_all_reduce(sum, std::span<float* const>{copies, 1}, IndexRange{}, label) } -> Future;
  strategy.background()->start_all_reduce(sum, std::span<float* const>{copies, 1}, IndexRange{}, label).wait(true);
  strategy.background()->cancel();
  strategy.background()->require_whole();
  { strategy.background()->failures() } -> std::convertible_to<std::size_t>;
};

namespace detail {

/// A strategy with one replica by its type.
template <class S>
concept HasOneReplica = (S::num_replicas_in_sync() == 1);

/// A strategy's background reductions; empty for one replica.
struct NoBackground {
  struct Started {};
};
template <class S>
struct BackgroundOf {
  using Type = NoBackground;
};
template <ReducesInBackground S>
struct BackgroundOf<S> {
  using Type = typename decltype(std::declval<S&>().background())::element_type;
};

/// Waits for the other replicas of this process.
void meet_here(const InReplica auto& replica) { replica.collectives().communicator().local().barrier(); }

}  // namespace detail

/// Sums a network's gradients over the replicas during the backward pass:
///
///     nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 1 << 20}};
///     strategy.run([&](auto& replica, const auto& batch) {
///       auto logits = net.forward(replica, batch.x);
///       auto loss = nn::sparse_categorical_crossentropy(replica, logits, batch.y, global_batch);
///       net.backward(replica, loss, overlap.on_ready(replica));
///       overlap.wait(replica);  // now net.gradients() are the sums
///       optimizer.apply_gradients(replica, nn::skip_aggregation);
///     }, batch);
///
/// Whole parameters, from the last to the first, form a bucket until it exceeds `bytes_per_pack`; 0 makes one bucket,
/// without overlap (spec H12). A bucket is reduced when all replicas of the process have its gradients: first over
/// these replicas in order, then over the processes by the strategy's policy. With MPI between nodes this requires
/// MPI_THREAD_MULTIPLE (MultiWorkerOptions::thread_level); otherwise buckets are reduced in `wait`.
///
/// This pays off if communication takes longer than the optimizer's pass, that is, between nodes: every replica gets
/// all sums, and updates all parameters (on mixed processors with differences in the last bit, see
/// Optimizer::apply_gradients with skip_aggregation), while `apply_gradients` alone shards the update, and fuses it
/// with the reduction. Changes of gradients after `backward`, as by nn::regularization_loss, are too late for the sum.
///
/// A replica function that throws ends the step for all replicas. With several processes an OverlappedAllReduce must
/// then be recreated on all of them; the old one throws. Requires gradients in the host's memory: a strategy on Cpu.
/// Strategy, network and trace must outlive it.
template <class S, class Network>
class OverlappedAllReduce {
  static_assert(!S::Store::shared,
                "nn::OverlappedAllReduce needs a copy of the parameters on every replica, updated with "
                "nn::skip_aggregation: use Mirrored or MultiWorker instead of CentralStorage");
  static_assert(Network::stores_gradients,
                "nn::OverlappedAllReduce needs gradients in memory: use nn::StoredGradients");

 public:
  /// The type of the gradients.
  using Element = typename Network::Element;

  /// Uses the strategy's timeout. A trace records "backward of LAYER" and "wait for gradients" on the replicas'
  /// threads, and "all_reduce of bucket" where it runs. A collective call of the processes, outside replica functions.
  OverlappedAllReduce(S& strategy, Network& network, const CommunicationOptions& options = {}, Trace* trace = nullptr)
      : network_(&network), trace_(trace), locals_(strategy.num_local_replicas()) {
    const std::span<const Parameter> layout = network.layout();
    std::vector<std::size_t> bytes;
    for (const Parameter& parameter : layout) bytes.push_back(parameter.shape.elements() * sizeof(Element));
    std::size_t end = std::as_const(network).gradients().size();
    for (const IndexRange pack : packs_by_bytes(bytes, strategy.communication().merge(options).bytes_per_pack)) {
      buckets_.push_back({layout[pack.begin].offset, end});
      end = buckets_.back().begin;
    }
    for (std::size_t replica = 0; replica < locals_.size(); ++replica)
      copies_.push_back(std::as_const(network).gradients().component(strategy.scope(), replica).data());
    if (trace_ != nullptr)
      for (const Parameter& parameter : layout)
        labels_.push_back(parameter.ordinal == 0 ? concat("backward of ", parameter.layer)
                                                 : concat("backward of ", parameter.layer, "_", parameter.ordinal));
    if constexpr (reduces) {
      if (strategy.num_replicas_in_sync() == 1) return;
      background_ = strategy.background();
      failures_ = background_->failures();
    } else {
      static_assert(detail::HasOneReplica<S>,
                    "nn::OverlappedAllReduce needs a strategy that models nn::ReducesInBackground, such as Mirrored or "
                    "MultiWorker, or one replica");
    }
  }
  OverlappedAllReduce(const OverlappedAllReduce&) = delete;
  OverlappedAllReduce& operator=(const OverlappedAllReduce&) = delete;
  ~OverlappedAllReduce() {
    if constexpr (reduces)
      if (background_ != nullptr) background_->cancel();
  }

  /// Returns the buckets in order of reduction, as ranges of the elements of `network.gradients()`.
  [[nodiscard]] std::span<const IndexRange> buckets() const noexcept { return buckets_; }
  /// True if buckets are reduced during `backward`, false if in `wait`.
  [[nodiscard]] bool overlaps() const noexcept {
    if constexpr (reduces)
      return background_ != nullptr && background_->overlaps();
    else
      return false;
  }

  /// Returns the `when_ready` argument of `Network::backward`, which starts each bucket when it is ready. Throws
  /// InvalidArgument if this replica has not waited since the last call, and the error of broken collectives.
  [[nodiscard]] auto on_ready(const InReplica auto& replica) {
    const std::size_t local = replica.local_index();
    begin(local);
    return [this, local](IndexRange elements) { advance(local, elements); };
  }

  /// Waits until this replica's gradients are the sums over all replicas. A collective call. Throws the error of a
  /// failed reduction, and InvalidArgument without a `backward`.
  template <InReplica Replica>
  void wait(const Replica& replica) {
    if constexpr (reduces) {
      if (background_ == nullptr) return;
      const std::size_t local = replica.local_index();
      const TraceSpan span{{trace_, "wait for gradients", static_cast<std::int64_t>(local)}};
      Local& mine = locals_[local];
      if (!mine.is_open || mine.ready % buckets_.size() != 0 || mine.ready == mine.begun)
        throw InvalidArgument(
            "OverlappedAllReduce::wait was called without a backward pass",
            concat("replica ", replica.replica_id().index(), " has no gradients in flight"),
            "Call net.backward(replica, loss, overlap.on_ready(replica)) before overlap.wait(replica)");
      detail::meet_here(replica);  // afterwards all replicas have all gradients, so all buckets are started
      mine.is_open = false;
      last_started().wait(local == 0);
      if constexpr (MayLackGradients<Network, Replica>) replica.all_reduce(max, network_->has_gradients(replica));
    }
  }

 private:
  using Background = typename detail::BackgroundOf<S>::Type;
  static constexpr bool reduces = ReducesInBackground<S>;

  /// The state of one replica of this process, guarded by the mutex, except what only this replica uses ("private").
  struct alignas(cache_line) Local {
    std::uint64_t ready = 0;  // buckets with gradients, since the start or the last failure
    std::uint64_t begun = 0;  // `ready` at the start of the step; private
    std::int64_t since = 0;   // end of the backward pass of the last layer; private
    bool is_open = false;     // between on_ready and wait; private
  };

  void begin(std::size_t local) {
    Local& mine = locals_[local];
    if (trace_ != nullptr) mine.since = Trace::now();
    if constexpr (reduces) {
      if (background_ == nullptr) return;
      background_->require_whole();
      const std::lock_guard lock{mutex_};
      if (const std::size_t failures = background_->failures(); failures != failures_) {
        // The failed step has ended: this is the first replica in the next one.
        failures_ = failures;
        for (Local& each : locals_) {
          each.ready = 0;
          each.is_open = false;
        }
        started_ = 0;
      }
      if (mine.is_open)
        throw InvalidArgument("An OverlappedAllReduce was used again before wait was called",
                              concat("the gradients of local replica ", local, " are still in flight"),
                              "Call overlap.wait(replica) after each backward");
      mine.is_open = true;
      mine.begun = mine.ready;
    }
  }

  /// Starts the buckets that are final on all replicas. This replica's gradients are final from `elements` on.
  void advance(std::size_t local, IndexRange elements) {
    Local& mine = locals_[local];
    if (trace_ != nullptr) {
      const std::int64_t now = Trace::now();
      const std::span<const Parameter> layout = network_->layout();
      const auto first = std::find_if(layout.begin(), layout.end(),
                                      [&](const Parameter& parameter) { return parameter.offset == elements.begin; });
      trace_->record(labels_[static_cast<std::size_t>(first - layout.begin())], static_cast<std::int64_t>(local),
                     mine.since, now);
      mine.since = now;
    }
    if constexpr (reduces) {
      if (background_ == nullptr) return;
      const std::uint64_t all = mine.begun + buckets_.size();
      std::uint64_t ready = mine.ready;
      while (ready < all && buckets_[ready - mine.begun].begin >= elements.begin) ++ready;
      if (ready == mine.ready) return;
      const std::lock_guard lock{mutex_};
      mine.ready = ready;
      for (const Local& each : locals_) ready = std::min(ready, each.ready);
      for (; started_ < ready; ++started_) {
        const std::size_t bucket = started_ % buckets_.size();
        last_ = background_->start_all_reduce(
            sum, std::span<Element* const>{copies_}, buckets_[bucket],
            ProfilerLabel{trace_, "all_reduce of bucket", static_cast<std::int64_t>(bucket)});
      }
    }
  }

  [[nodiscard]] auto last_started() {
    const std::lock_guard lock{mutex_};
    return last_;
  }

  Network* network_;
  Trace* trace_;
  std::vector<IndexRange> buckets_;
  std::vector<Element*> copies_;     // gradients of the replicas of this process
  std::vector<std::string> labels_;  // of the parameters, in a trace
  std::shared_ptr<Background> background_;
  std::mutex mutex_;
  std::vector<Local> locals_;
  std::uint64_t started_ = 0;  // started buckets, counted like `ready`
  [[no_unique_address]] typename Background::Started last_{};
  std::size_t failures_ = 0;  // of the background, when the counts started
};

/// Deduces the template arguments.
template <Strategy S, class Network>
OverlappedAllReduce(S&, Network&) -> OverlappedAllReduce<S, Network>;
/// Deduces the template arguments.
template <Strategy S, class Network>
OverlappedAllReduce(S&, Network&, const CommunicationOptions&) -> OverlappedAllReduce<S, Network>;
/// Deduces the template arguments.
template <Strategy S, class Network>
OverlappedAllReduce(S&, Network&, const CommunicationOptions&, Trace*) -> OverlappedAllReduce<S, Network>;

template <class S, class Network>
  requires(!KeepsVariablesOnHost<S>)
struct OverlappedAllReduce<S, Network> : dist::detail::Refused {
  using Refused::Refused;
  static_assert(dist::detail::satisfied<Strategy<S>>,
                DIST_NEEDS_STRATEGY("an nn::OverlappedAllReduce", "nn::OverlappedAllReduce overlap{strategy, net}"));
  static_assert(dist::detail::satisfied<(!Strategy<S>)>,
                "nn::OverlappedAllReduce sums gradients in host memory, but this strategy's gradients are in the "
                "memory of another device: leave it out, and let optimizer.apply_gradients(replica) sum them there");
};
/// Reports a first argument that is not a strategy.
template <dist::detail::NoStrategy First, class... Rest>
OverlappedAllReduce(First&&, Rest&&...) -> OverlappedAllReduce<std::remove_reference_t<First>, void>;

}  // namespace dist::nn
