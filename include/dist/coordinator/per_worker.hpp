#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/input_context.hpp>
#include <dist/coordinator/coordinator_state.hpp>
#include <dist/coordinator/worker_context.hpp>
#include <dist/coordinator/worker_copy.hpp>
#include <dist/coordinator/worker_session.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/dataset.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/registry.hpp>

namespace dist {

/// The pass over a worker's dataset has ended. A function that lets it pass fails with it.
class OutOfData : public Error {
 public:
  using Error::Error;
};

/// A pass over the dataset of a worker, which goes on from function to function (spec L09).
template <class D>
  requires data::Dataset<D>
class PerWorkerIterator {
 public:
  using Element = data::ElementOf<D>;

  explicit PerWorkerIterator(D dataset) : dataset_(std::move(dataset)) {}
  PerWorkerIterator(const PerWorkerIterator&) = delete;
  PerWorkerIterator& operator=(const PerWorkerIterator&) = delete;

  /// The next element, which stays until the next call. Throws OutOfData at the end of the pass.
  [[nodiscard]] const Element& next() {
    if (!next(element_))
      throw OutOfData("The dataset of a worker has no more elements", "its pass has ended",
                      "Schedule no more steps than it has elements, call restart(), or repeat the dataset");
    return element_;
  }
  /// Writes the next element over the caller's; false at the end of the pass, and ever after.
  [[nodiscard]] bool next(Element& element) {
    if (!pass_) pass_.emplace(dataset_.iterate(epoch_));
    return pass_->next(element);
  }
  /// Begins the next pass over the data.
  void restart() {
    pass_.reset();
    ++epoch_;
  }

 private:
  const D dataset_;
  std::uint64_t epoch_ = 0;
  std::optional<data::IteratorOf<D>> pass_;
  Element element_{};
};

namespace detail {

/// What a function makes for a worker: a dataset is passed over by an iterator.
template <class Made>
struct ResourceOf {
  using Type = Made;
};
template <class Made>
  requires data::Dataset<Made>
struct ResourceOf<Made> {
  using Type = PerWorkerIterator<Made>;
};

template <class F, class... Arguments>
WorkerResource make_resource(WorkerSession& session, ArchiveReader& archive) {
  F function = archive.get<F>();
  auto arguments = archive.get<std::tuple<Arguments...>>();
  archive.expect_end();
  const InputContext context = session.input_context();
  const auto call = [&](Arguments&... given) { return function(context, given...); };
  using Resource = typename ResourceOf<decltype(std::apply(call, arguments))>::Type;
  // Not make_shared of a copy: what the function returns may be neither copied nor moved.
  return {std::shared_ptr<Resource>(new Resource(std::apply(call, arguments))), &type_mark<Resource>};
}

/// What a scheduled function gets first, by the strategy of the coordinator.
template <class S>
struct ContextOnWorkerOf {
  using Type = WorkerContext;
};
template <HasWorkerStrategy S>
struct ContextOnWorkerOf<S> {
  using Type = WorkerReplicaContext<S>;
};
template <class S>
using ContextOnWorker = typename ContextOnWorkerOf<S>::Type;

/// A scheduled function as its worker calls it.
template <class S, class F>
struct FunctionOnWorker {
  F function;

  template <class... Arguments>
  decltype(auto) operator()(WorkerContext& worker, Arguments&... arguments) {
    std::tuple<OnWorker<Arguments>...> here{on_worker(worker.session(), arguments)...};
    const auto call = [&](auto& context) -> decltype(auto) {
      return std::apply([&](auto&... given) -> decltype(auto) { return function(context, given...); }, here);
    };
    worker.function_run().in_function = true;
    if constexpr (HasWorkerStrategy<S>) {
      CachedVariables<S> wanted;
      (add_variables<S>(wanted, worker.session(), arguments), ...);
      return worker.session().template strategy<S>().run_step(wanted, [&](const auto& replica) -> decltype(auto) {
        WorkerReplicaContext<S> context{replica, worker, wanted};
        return call(context);
      });
    } else {
      return call(worker);
    }
  }
};

}  // namespace detail

}  // namespace dist
