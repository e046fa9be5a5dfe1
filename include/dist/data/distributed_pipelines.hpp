#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/input_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/any_pass.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/replica_batches.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// Datasets with one batch per replica: each step gives every local replica one batch, as views that are valid until
/// the next step. One dataset serves all replicas in turn, or each has its own. Made by
/// `distribute_datasets_from_function`.
///
/// A step runs if any replica of any worker has a batch; the others receive 0 rows of the same extents (spec I24). An
/// incomplete step can be dropped (spec I25). Several workers agree on that by `A`, see AgreedEnd.
template <Dataset D, Agreement A = NoAgreement>
  requires HasRows<ElementOf<D>>
class DistributedPipelines : public DatasetRange<DistributedPipelines<D, A>> {
 public:
  /// The value of one step: views of rows for each local replica.
  using Value = PerReplica<RowsOf<ElementOf<D>>>;
  using Element = Value;
  static constexpr bool lends_elements = true;

  /// Takes one pipeline, or one per local replica. Throws InvalidArgument for other numbers, or if `replicas` is 0.
  DistributedPipelines(std::vector<D> pipelines, std::size_t replicas, Remainder last_step, std::size_t workers = 1,
                       A agreement = A())
      : pipelines_(std::move(pipelines)),
        replicas_(replicas),
        last_step_(last_step),
        workers_(workers),
        agreement_(std::move(agreement)) {
    detail::require_pipelines(pipelines_.size(), replicas);
  }

  using Iterator = detail::ReplicaSteps<ElementOf<D>>;

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const {
    std::vector<std::unique_ptr<detail::AnyPass>> upstreams;
    upstreams.reserve(pipelines_.size());
    for (const D& pipeline : pipelines_) upstreams.push_back(detail::any_pass(pipeline, epoch));
    return {detail::batches_of_pipelines(std::move(upstreams), detail::batch_ops<ElementOf<D>>, replicas_, last_step_),
            replicas_,
            {agreement_, own_steps(), last_step_}};
  }
  /// The number of steps of one epoch (spec I27). With several workers it depends on the others' data.
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality mine = own_steps();
    if (std::same_as<A, NoAgreement> || workers_ == 1) return mine;
    return mine.is_infinite() && last_step_ == Remainder::keep ? mine : Cardinality::unknown();
  }
  /// The number of replicas of this worker.
  [[nodiscard]] std::size_t num_replicas() const noexcept { return replicas_; }

 private:
  /// The number of steps of this worker's data.
  [[nodiscard]] Cardinality own_steps() const {
    if (pipelines_.size() == 1) return detail::groups_of(pipelines_[0].cardinality(), replicas_, last_step_);
    Cardinality steps = pipelines_[0].cardinality();
    for (const D& pipeline : pipelines_) steps = detail::steps_of_both(steps, pipeline.cardinality(), last_step_);
    return steps;
  }

  std::vector<D> pipelines_;
  std::size_t replicas_;
  Remainder last_step_;
  std::size_t workers_;
  [[no_unique_address]] A agreement_;
};

namespace detail {

/// The result type of a function that takes an InputContext.
template <class Fn>
using MadeBy = std::remove_cvref_t<std::invoke_result_t<Fn&, const InputContext&>>;

/// True if `Fn` takes an InputContext and returns a dataset of batches.
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
                  "distribute_datasets_from_function takes data::PipelinePerWorker or data::PipelinePerReplica: "
                  "sharding and prefetching are left to the function");
  } else if constexpr (!makes_batches) {
    static_assert(makes_batches,
                  "distribute_datasets_from_function: the function must take a dist::InputContext and return a dataset "
                  "of batches: add | dist::data::batch(context.get_per_replica_batch_size(global_batch_size))");
  } else if constexpr (per_replica) {
    if (context.num_input_pipelines() != 1)
      throw InvalidArgument(
          "A pipeline for every replica is not supported here",
          concat("the job has ", context.num_input_pipelines(), " workers, and this mode needs exactly one"),
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
