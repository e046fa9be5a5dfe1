#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/input_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/data/agreed_end.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/poison.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// Datasets whose batches are those of replicas: each step gives every local replica one batch, as views that stay
/// valid until the next step. Either one dataset serves all replicas in turn, or each has its own. Made by
/// `distribute_datasets_from_function`.
///
/// A step runs if any replica of any worker has a batch; the others receive 0 rows of the same extents (spec I24). An
/// incomplete one can be dropped (spec I25). `A` lets several workers agree on that, see AgreedEnd.
template <Dataset D, Agreement A = NoAgreement>
  requires HasRows<ElementOf<D>>
class DistributedPipelines : public DatasetRange<DistributedPipelines<D, A>> {
 public:
  using Value = PerReplica<RowsOf<ElementOf<D>>>;
  using Element = Value;
  static constexpr bool lends_elements = true;

  /// One pipeline, or as many as there are replicas here; `workers` agree by `agreement`. Throws InvalidArgument for
  /// another number, and for zero replicas.
  DistributedPipelines(std::vector<D> pipelines, std::size_t replicas, Remainder last_step, std::size_t workers = 1,
                       A agreement = A())
      : pipelines_(std::move(pipelines)),
        replicas_(replicas),
        last_step_(last_step),
        workers_(workers),
        agreement_(std::move(agreement)) {
    if (replicas == 0 || (pipelines_.size() != 1 && pipelines_.size() != replicas))
      throw InvalidArgument("The replicas cannot be served by these pipelines",
                            concat(pipelines_.size(), " pipelines for ", replicas, " replicas"),
                            "Make one pipeline, or one for each replica");
  }

  class Iterator {
   public:
    Iterator(const DistributedPipelines& dataset, std::uint64_t epoch)
        : batches_(dataset.replicas_),
          last_step_(dataset.last_step_),
          end_(dataset.agreement_, dataset.own_steps(), dataset.last_step_) {
      upstreams_.reserve(dataset.pipelines_.size());
      for (const D& pipeline : dataset.pipelines_) upstreams_.push_back(pipeline.iterate(epoch));
    }

    /// As of a dataset's iterator. Throws ShapeMismatch when the parts of a batch differ in their number of rows, and
    /// what the agreement throws.
    bool next(Value& values) {
      if (end_.is_over() || !end_.runs(end_.has_data([this] { return read_batches(); }))) return false;
      if (values.size() != batches_.size()) values = Value(batches_.size());
      for (std::size_t replica = 0; replica < batches_.size(); ++replica) {
        const Held& held = batches_[replica];
        values[replica] =
            held.has_batch ? rows_of(held.batch, 0, row_count(held.batch)) : rows_of(batches_[like_].batch, 0, 0);
      }
      return true;
    }
    /// The next step, or none at the end (spec I22).
    [[nodiscard]] std::optional<Value> get_next_as_optional() { return next_of<Value>(*this); }

   private:
    struct Held {
      ElementOf<D> batch{};
      bool has_batch = false;
    };

    /// Whether this worker has data for a step.
    bool read_batches() {
      std::size_t filled = 0;
      for (std::size_t replica = 0; replica < batches_.size(); ++replica) {
        Held& held = batches_[replica];
        if constexpr (detail::poisons_batches)
          if (held.has_batch) detail::poison_rows(held.batch, 0, row_count(held.batch));
        held.has_batch = upstreams_[upstreams_.size() == 1 ? 0 : replica].next(held.batch);
        if (!held.has_batch) continue;
        ++filled;
        like_ = replica;
      }
      return filled == batches_.size() || (filled > 0 && last_step_ == Remainder::keep);
    }

    std::vector<IteratorOf<D>> upstreams_;
    std::vector<Held> batches_;
    std::size_t like_ = 0;  // the last replica that had a batch
    Remainder last_step_;
    AgreedEnd<A> end_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  /// How many steps one epoch has (spec I27). With several workers it depends on what the others have.
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality mine = own_steps();
    if (std::same_as<A, NoAgreement> || workers_ == 1) return mine;
    return mine.is_infinite() && last_step_ == Remainder::keep ? mine : Cardinality::unknown();
  }
  [[nodiscard]] std::size_t num_replicas() const noexcept { return replicas_; }

 private:
  /// As many as this worker's data make.
  [[nodiscard]] Cardinality own_steps() const {
    const bool keeps = last_step_ == Remainder::keep;
    if (pipelines_.size() == 1) return detail::groups_of(pipelines_[0].cardinality(), replicas_, last_step_);
    Cardinality steps = pipelines_[0].cardinality();
    for (const D& pipeline : pipelines_) steps = combined(steps, pipeline.cardinality(), keeps);
    return steps;
  }
  /// The longer of two pipelines goes on alone where partial steps are kept; otherwise the shorter one ends both.
  static Cardinality combined(Cardinality a, Cardinality b, bool keeps) {
    if (a.is_infinite() || b.is_infinite()) return keeps ? Cardinality::infinite() : a.is_infinite() ? b : a;
    if (!a.is_known() || !b.is_known()) return Cardinality::unknown();
    return Cardinality::known(keeps ? std::max(a.count(), b.count()) : std::min(a.count(), b.count()));
  }

  std::vector<D> pipelines_;
  std::size_t replicas_;
  Remainder last_step_;
  std::size_t workers_;
  [[no_unique_address]] A agreement_;
};

namespace detail {

/// What a function makes of an InputContext.
template <class Fn>
using MadeBy = std::remove_cvref_t<std::invoke_result_t<Fn&, const InputContext&>>;

/// Whether that is a dataset of batches.
template <class Fn>
[[nodiscard]] constexpr bool makes_batches() {
  if constexpr (std::is_invocable_v<Fn&, const InputContext&>)
    if constexpr (Dataset<MadeBy<Fn>> && is_batched<MadeBy<Fn>>) return HasRows<ElementOf<MadeBy<Fn>>>;
  return false;
}

}  // namespace detail

template <class Fn, class Options, Agreement A>
auto distribute_datasets_from_function(Fn&& fn, std::size_t local_replicas, const InputContext& context,
                                       const Options& options, A agreement) {
  constexpr bool per_replica = std::same_as<Options, PipelinePerReplica>;
  constexpr bool takes_options = per_replica || std::same_as<Options, PipelinePerWorker>;
  constexpr bool makes_batches = detail::makes_batches<Fn>();
  if constexpr (!takes_options) {
    static_assert(takes_options,
                  "distribute_datasets_from_function takes data::PipelinePerWorker or data::PipelinePerReplica: it "
                  "neither shards nor makes batches ahead, the function does");
  } else if constexpr (!makes_batches) {
    static_assert(makes_batches,
                  "distribute_datasets_from_function: the function must take a dist::InputContext and return a dataset "
                  "of batches: add | dist::data::batch(context.get_per_replica_batch_size(global_batch_size))");
  } else if constexpr (per_replica) {
    if (context.num_input_pipelines() != 1)
      throw InvalidArgument("A pipeline for every replica was asked for",
                            concat("there are ", context.num_input_pipelines(), " workers, only one can do that"),
                            "Use data::PipelinePerWorker");
    using D = PrefetchDataset<detail::MadeBy<Fn>>;
    std::vector<D> pipelines;
    pipelines.reserve(local_replicas);
    for (std::size_t replica = 0; replica < local_replicas; ++replica)
      pipelines.push_back(
          D{fn(InputContext{local_replicas, replica, context.num_replicas_in_sync()}), options.fetch_ahead});
    return DistributedPipelines<D>{std::move(pipelines), local_replicas, options.last_step};
  } else {
    std::vector<detail::MadeBy<Fn>> pipelines;
    pipelines.push_back(fn(context));
    return DistributedPipelines<detail::MadeBy<Fn>, A>{std::move(pipelines), local_replicas, options.last_step,
                                                       context.num_input_pipelines(), std::move(agreement)};
  }
}

}  // namespace dist::data
