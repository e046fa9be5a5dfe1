// Checkpoints of several workers: each writes a file, and others restore them.
// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <dist/checkpoint/checkpoint_manager.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/generator.hpp>

#include <support/file_size_limit.hpp>
#include <support/saved.hpp>

#include "of_workers.hpp"
#include "shared_folder.hpp"

namespace nn = dist::nn;
using dist::Checkpoint;
using dist::CheckpointManager;
using Workers = dist::MultiWorker<dist::RingAllReduce>;
using namespace of_workers;

namespace {

/// State in a checkpoint: one object for each way in which workers store state.
template <class S>
struct Parts {
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<30, nn::Relu>, nn::Dense<3>>;

  Parts(S& strategy, std::uint64_t seed)
      : net(strategy, seed),
        optimizer(strategy, net, nn::Adam{}),
        random(strategy, seed),
        total(strategy.template variable<double, dist::OnRead, dist::Sum>({3})),
        mean(strategy.template variable<double, dist::OnRead, dist::Mean>({3})) {}

  void track(auto& visit) {
    visit("net", net);
    visit("optimizer", optimizer);
    visit("total", total);
    visit("mean", mean);
    visit("epoch", epoch);
  }

  nn::Network<Net, nn::Reference, double> net;
  nn::Optimizer<S, decltype(net), nn::Adam> optimizer;
  dist::Generator<S> random;
  decltype(std::declval<S&>().template variable<double, dist::OnRead, dist::Sum>(dist::Shape{})) total;
  decltype(std::declval<S&>().template variable<double, dist::OnRead, dist::Mean>(dist::Shape{})) mean;
  std::int64_t epoch = 0;
};

/// Sets different values on every replica, and creates the optimizer's slots.
template <class S>
void train(S& strategy, Parts<S>& parts) {
  strategy.run([&](auto& replica) {
    const auto id = static_cast<double>(replica.replica_id().index());
    parts.total.assign(replica, id);
    parts.mean.assign(replica, id);
    for (std::uint64_t draw = 0; draw <= replica.replica_id().index(); ++draw)
      static_cast<void>(parts.random.uniform(replica));
    auto gradients = parts.net.gradients().component(replica);
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = id + static_cast<double>(i % 7);
    parts.optimizer.apply_gradients(replica);
  });
  parts.epoch = 5;
}

template <class S>
void save(S& strategy, Parts<S>& parts, const std::string& path) {
  Checkpoint checkpoint{strategy};
  checkpoint.add("parts", parts).add("random", parts.random).save(path);
}

/// Restores the checkpoint and compares all values with `saved`.
template <class S>
void check_restored(S& strategy, const std::string& path, const support::Saved& saved, double total) {
  Parts<S> parts{strategy, 9};
  Checkpoint checkpoint{strategy};
  checkpoint.add("parts", parts).add("random", parts.random).restore(path);
  CHECK(checkpoint.unrestored().empty());
  CHECK(parts.epoch == 5);
  const support::Saved again{strategy, parts};
  for (const std::string& key : saved.keys()) CHECK_MESSAGE(again.same(saved, key), key);
  CHECK(parts.total.read(strategy.scope())[2] == total);
}

}  // namespace

TEST_CASE("a number that differs between workers is rejected with both values, before a file is created") {
  const SharedFolder folder;
  Workers strategy{{.communication = {.timeout = std::chrono::seconds{20}}}};
  std::int64_t epoch = 7;
  std::uint64_t particles = is_last() ? 103 : 100;
  double step = 0.5;
  Checkpoint checkpoint{strategy};
  checkpoint.add("epoch", epoch).add("particles", particles).add("step", step);
  const std::string path = folder.path() + "/numbers";
  if (strategy.num_workers() > 1) {
    const std::string last = dist::concat(strategy.num_workers() - 1);
    CHECK(has(failure([&] { checkpoint.save(path); }),
              "ShapeMismatch: Process " + last +
                  " and the first process save different numbers ('particles' = 103 in "
                  "process " +
                  last + ", and 'particles' = 100 in the first)"));
    particles = 100;
    if (is_last()) step = std::nextafter(0.5, 1.0);
    CHECK(has(failure([&] { checkpoint.save(path); }), "'step' = 0.50000000000000011 in process " + last));
    CHECK(!std::filesystem::exists(path));
  }
  particles = 100;
  step = 0.5;
  checkpoint.save(path);
  particles = 0;
  checkpoint.restore(path);
  CHECK(particles == 100);
}

TEST_CASE("each worker writes a file, and any number of workers and replicas restores them (spec N08)") {
  const SharedFolder folder;
  Workers all{{.replicas = 2}};
  Parts<Workers> parts{all, 1};
  train(all, parts);
  save(all, parts, folder.path("saved"));
  const support::Saved saved{all, parts};
  const double last = static_cast<double>(all.num_replicas_in_sync() - 1);
  const double total = last * (last + 1) / 2;
  const dist::detail::CheckpointReader reader{folder.path("saved")};
  REQUIRE(reader.manifest().files.size() == ranks());
  // The writes are divided: the largest tensors have 120 and 90 elements of eight bytes.
  std::uint64_t most = 0;
  std::uint64_t sum = 0;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const dist::io::Safetensors file{folder.path("saved/" + reader.manifest().files[rank].name)};
    std::uint64_t bytes = 0;
    for (const auto& entry : file.entries()) bytes += entry.bytes;
    most = std::max(most, bytes);
    sum += bytes;
  }
  CHECK(most <= sum / ranks() + 8 * 120);

  check_restored(all, folder.path("saved"), saved, total);
  Workers fewer{{.replicas = 1}};
  check_restored(fewer, folder.path("saved"), saved, total);
  {
    // Two groups of workers: the first one alone, and the rest.
    Workers part = all.split(my_rank() == 0 ? 0 : 1, my_rank());
    check_restored(part, folder.path("saved"), saved, total);
  }
  dist::Mirrored<dist::ThreadAllReduce> mirrored{3};
  check_restored(mirrored, folder.path("saved"), saved, total);
  meet();
  {
    // The reverse: one process saves, all restore.
    if (my_rank() == 0) {
      dist::Default alone;
      Parts<dist::Default> of_one{alone, 9};
      Checkpoint checkpoint{alone};
      checkpoint.add("parts", of_one).add("random", of_one.random).restore(folder.path("saved"));
      save(alone, of_one, folder.path("again"));
    }
    meet();
    check_restored(all, folder.path("again"), saved, total);
    CHECK(dist::detail::CheckpointReader{folder.path("again")}.manifest().files.size() == 1);
  }
}

TEST_CASE("a background save stores the values at start_save") {
  const SharedFolder folder;
  Workers strategy{{.replicas = 1}};
  auto weights = strategy.variable<float>({500'000}, 1.0f);
  Checkpoint checkpoint{strategy};
  checkpoint.add("weights", weights);
  const auto first = checkpoint.start_save(folder.path("a"));
  weights.assign(strategy.scope(), 2.0f);
  static_cast<void>(checkpoint.start_save(folder.path("b")));
  CHECK(first.is_done());
  first.wait();
  static_cast<void>(checkpoint.start_save(folder.path("c")));
  checkpoint.restore(folder.path("a"));
  CHECK(weights.read(strategy.scope())[499'999] == 1.0f);
  checkpoint.restore(folder.path("b"));
  CHECK(weights.read(strategy.scope())[0] == 2.0f);
  CHECK(dist::detail::CheckpointReader{folder.path("b")}.manifest().serial == 2);
}

TEST_CASE("a worker with a failing disk reports it to all in time, and the old checkpoint is kept") {
  const SharedFolder folder;
  Workers strategy{{.replicas = 1}};
  // Equally large tensors, one for each worker, so that each must write one.
  std::vector<std::unique_ptr<decltype(strategy.variable<float>({1}))>> weights;
  Checkpoint checkpoint{strategy};
  for (std::size_t i = 0; i < ranks(); ++i) {
    weights.push_back(
        std::make_unique<decltype(strategy.variable<float>({1}))>(strategy.variable<float>({100'000}, 1.0f)));
    checkpoint.add(dist::concat("weights_", i), *weights.back());
  }
  checkpoint.save(folder.path("a"));
  for (auto& each : weights) each->assign(strategy.scope(), 2.0f);
  for (const bool waits : {true, false}) {
    meet();
    std::optional<support::FileSizeLimit> limit;
    if (is_last()) limit.emplace(40'000);
    const auto start = std::chrono::steady_clock::now();
    const std::string said = failure([&] {
      const auto saving = checkpoint.start_save(folder.path("a"));
      if (waits)
        saving.wait();
      else
        static_cast<void>(checkpoint.start_save(folder.path("b")));  // waits for the previous one
    });
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::minutes{1});
    limit.reset();
    if (is_last())
      CHECK(has(said, "cannot be written (File too large"));
    else
      CHECK((said.find("File too large") != std::string::npos || has(said, "is an incomplete checkpoint")));
    checkpoint.restore(folder.path("a"));
    for (auto& each : weights) {
      CHECK(each->read(strategy.scope())[99'999] == 1.0f);
      each->assign(strategy.scope(), 2.0f);
    }
  }
  checkpoint.save(folder.path("a"));
  checkpoint.restore(folder.path("a"));
  CHECK(weights.back()->read(strategy.scope())[0] == 2.0f);
  meet();
  CHECK(dist::detail::names_in(folder.path("a")).size() == ranks() + 1);  // the earlier saves left nothing else
}

TEST_CASE("workers with separate folders get an error that suggests a shared one") {
  const SharedFolder folder;
  Workers strategy{{.replicas = 1}};
  int number = 1;
  Checkpoint checkpoint{strategy};
  checkpoint.add("number", number);
  const std::string own = folder.path(dist::concat("of_", my_rank()));
  std::filesystem::create_directory(own);
  const std::string said = failure([&] { checkpoint.save(own); });
  if (ranks() == 1)
    CHECK(said == "nothing was thrown");
  else if (my_rank() > 0)
    CHECK(has(said, dist::concat("File '", own, "' is not the folder that the first process uses (process ", my_rank(),
                                 " does not see the file that the first process has just created there). Use a folder "
                                 "that all processes share.")));
  else
    CHECK(has(said, "is not the folder that the first process uses"));
  CHECK(dist::detail::is_checkpoint(own) == (ranks() == 1));
  // Different checkpoints are not restored as one, either.
  {
    Workers alone = strategy.split(my_rank(), 0);
    Checkpoint mine{alone};
    mine.add("number", number).save(own);
  }
  meet();
  const std::string restored = failure([&] { checkpoint.restore(own); });
  CHECK((ranks() == 1 ? restored == "nothing was thrown" : has(restored, "Processes restore different checkpoints")));
  checkpoint.save(folder.path("shared"));
  checkpoint.restore(folder.path("shared"));
}

TEST_CASE("a CheckpointManager works with several workers") {
  const SharedFolder folder;
  Workers strategy{{.replicas = 1}};
  std::int64_t step = 0;
  auto weights = strategy.variable<float>({1000}, 1.0f);
  auto more = strategy.variable<float>({1000}, 1.0f);
  Checkpoint checkpoint{strategy};
  checkpoint.add("step", step).add("weights", weights).add("more", more);
  CheckpointManager manager{checkpoint, folder.path("all"), {.max_to_keep = 2}};
  CHECK(manager.restore_latest() == std::nullopt);
  for (step = 1; step <= 3; ++step) CHECK(manager.save() == folder.path(dist::concat("all/ckpt-", step)));
  meet();
  CHECK(manager.checkpoints().size() == 2);
  CHECK(has(failure([&] {
              CheckpointManager{checkpoint, folder.path("all")};
            }),
            "is a folder that already has a writer of checkpoints"));
  meet();
  if (my_rank() == 0) {
    const dist::detail::Manifest manifest = dist::detail::read_manifest(folder.path("all/ckpt-3"));
    std::filesystem::resize_file(folder.path("all/ckpt-3/" + manifest.files.back().name), 100);
  }
  meet();
  CHECK(manager.restore_latest() == folder.path("all/ckpt-2"));
  CHECK(step == 2);
  CHECK(manager.save() == folder.path("all/ckpt-4"));
}
