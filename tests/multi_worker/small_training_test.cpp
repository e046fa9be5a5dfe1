// Training on several workers equals training on one replica, with any division.
// ranks: 1 2 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <memory>

#include <conformance/small_training.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/strategy/default.hpp>

using namespace conformance::small;

namespace {

/// Calls `check` with a strategy whose replicas divide the global batch, if that is possible.
template <class S>
void with_options(const dist::MultiWorkerOptions& options, auto check) {
  auto strategy = std::make_unique<S>(options);
  if (global_batch % strategy->num_replicas_in_sync() == 0) check(std::move(strategy));
}
void with_workers(auto check) {
  using Ring = dist::MultiWorker<dist::RingAllReduce>;
  with_options<Ring>({.replicas = 1}, check);
  with_options<Ring>({.replicas = 2}, check);
  with_options<Ring>({.replicas = 2, .hierarchical = false}, check);  // as if each worker were on a separate node
  with_options<dist::MultiWorker<dist::MpiAllReduce>>({.replicas = 2}, check);
}

}  // namespace

TEST_CASE("several workers train like one replica with Model::fit (spec P05, P24)") {
  const Trained expected = fit(std::make_unique<dist::Default>(), descent, nn::MeanSquaredError{});
  with_workers([&](auto strategy) { check_same(fit(std::move(strategy), descent, nn::MeanSquaredError{}), expected); });
}

TEST_CASE("several workers train like one replica with a custom loop (spec P04, P07, P24)") {
  const Trained expected = fit(std::make_unique<dist::Default>(), descent, nn::MeanSquaredError{});
  with_workers([&](auto strategy) {
    const std::vector<double> means = loop(std::move(strategy));
    for (std::size_t epoch = 0; epoch < means.size(); ++epoch)
      CHECK(means[epoch] == doctest::Approx(expected.losses[epoch]).epsilon(1e-5).scale(0));
  });
}
