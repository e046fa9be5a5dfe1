// Scaling of the training step of the guide's CNN from 1 to 8 replicas, also beyond the number of cores, for a fixed
// batch per replica and for a fixed global batch. Each number of replicas alternates with the same reference, so that
// the rows are comparable.
//
//   bench_scaling [ROUNDS [JSON]]
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>

#include "support/arguments.hpp"
#include "support/cnn.hpp"
#include "support/machine.hpp"
#include "support/rounds.hpp"

namespace {

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;

constexpr std::size_t reference_replicas = 2;

std::string name_of(const char* strategy, std::size_t replicas, std::size_t batch) {
  return std::string(strategy) + ", " + std::to_string(replicas) + " x " + std::to_string(batch);
}

void measure(bench::Rounds& table, int rounds, Mirrored& both_cores) {
  table.run(rounds, 0.1, bench::quiet_cores(both_cores));
  table.print_table();
  std::fflush(stdout);
}

/// Compares `replicas` times `batch` images to two replicas with `reference_batch` images each.
template <class Strategy>
void compare(std::vector<bench::Rounds>& tables, const char* name, int rounds, std::size_t replicas, std::size_t batch,
             std::size_t reference_batch) {
  Mirrored reference{reference_replicas};
  Strategy strategy{replicas};
  const bench::Images images{replicas * batch};
  const bench::Images reference_images{reference_replicas * reference_batch};
  bench::Training<Mirrored> reference_step{reference};
  bench::Training<Strategy> step{strategy};

  bench::Rounds& table = tables.emplace_back(name_of(name, replicas, batch), "images");
  const auto two = table.add(name_of("Mirrored", reference_replicas, reference_batch), [&] {
    reference_step(reference_images);
    return static_cast<double>(reference_images.x.rows());
  });
  const auto many = table.add(name_of(name, replicas, batch), [&] {
    step(images);
    return static_cast<double>(images.x.rows());
  });
  table.ratio("images per second, over the reference", many, two);
  measure(table, rounds, reference);
}

/// Compares only the sum over the replicas and the update.
template <class Strategy>
void compare_updates(std::vector<bench::Rounds>& tables, const char* name, int rounds, std::size_t replicas) {
  Mirrored reference{reference_replicas};
  Strategy strategy{replicas};
  bench::Training<Mirrored> reference_step{reference};
  bench::Training<Strategy> step{strategy};
  reference_step(bench::Images{reference_replicas});  // so that gradients are allocated
  step(bench::Images{replicas});

  bench::Rounds& table =
      tables.emplace_back("Sum and update alone, " + std::to_string(replicas) + " replicas", "updates");
  const auto two = table.add("Mirrored, " + std::to_string(reference_replicas), [&] {
    reference_step.update();
    return 1.0;
  });
  const auto many = table.add(std::string(name) + ", " + std::to_string(replicas), [&] {
    step.update();
    return 1.0;
  });
  table.ratio("updates per second, over the reference", many, two);
  measure(table, rounds, reference);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 2, "[ROUNDS [JSON]]",
                                   "Times the training step and the update of the CNN for 1 to 8 replicas."};
  const int rounds = arguments.number(0, 15);
  const bench::JsonFile json{arguments.text(1)};
  std::vector<bench::Rounds> tables;

  std::printf("Fixed batch per replica: 64 images\n");
  constexpr std::size_t few_to_many[] = {1, 2, 3, 4, 6, 8};
  constexpr std::size_t two_to_eight[] = {2, 4, 8};
  for (const std::size_t replicas : few_to_many) {
    compare<Mirrored>(tables, "Mirrored", rounds, replicas, 64, 64);
    compare_updates<Mirrored>(tables, "Mirrored", rounds, replicas);
  }
  for (const std::size_t replicas : two_to_eight) {
    compare<Central>(tables, "CentralStorage", rounds, replicas, 64, 64);
    compare_updates<Central>(tables, "CentralStorage", rounds, replicas);
  }

  std::printf("\nFixed global batch: 128 and 512 images\n");
  constexpr std::size_t totals[] = {128, 512};
  constexpr std::size_t dividers[] = {1, 2, 4, 8};
  for (const std::size_t total : totals)
    for (const std::size_t replicas : dividers) {
      if (replicas != reference_replicas)
        compare<Mirrored>(tables, "Mirrored", rounds, replicas, total / replicas, total / reference_replicas);
      compare<Central>(tables, "CentralStorage", rounds, replicas, total / replicas, total / reference_replicas);
    }

  if (json.get() != nullptr) bench::print_json(json.get(), tables);
}
