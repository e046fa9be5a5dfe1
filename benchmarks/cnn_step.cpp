// The training step of the guide's CNN on data in memory with all suitable strategies, compared with the multiply-add
// limit of the machine.
//
//   bench_cnn_step [ROUNDS [JSON]]        all contenders in turns, ratios
//   bench_cnn_step --only NAME [SECONDS]  one contender alone, for profilers and comparisons
#include <cstddef>
#include <memory>

#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>

#include "support/cnn.hpp"
#include "support/machine.hpp"
#include "support/named_contenders.hpp"
#include "support/training_steps.hpp"

namespace {

namespace nn = dist::nn;
using One = dist::OneDevice<dist::Cpu>;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;
using Owners = nn::OwnerComputedGradients<64>;

template <class Strategy, class Gradients>
struct Run {
  template <class... Arguments>
  explicit Run(std::size_t global_batch, Arguments... replicas) : strategy(replicas...), images(global_batch) {}

  Strategy strategy;
  bench::Images images;
  bench::Training<Strategy, Gradients> training{strategy};
};

/// Runs one global step. Returns the number of images.
template <class Strategy, class Gradients = nn::StoredGradients, class... Arguments>
bench::Work make(std::size_t global_batch, Arguments... replicas) {
  const auto run = std::make_shared<Run<Strategy, Gradients>>(global_batch, replicas...);
  return [run] {
    run->training(run->images);
    return static_cast<double>(run->images.x.rows());
  };
}

const bench::NamedContender contenders[] = {
    {"limit", "multiply-add limit of one core",
     [] {
       return [] {
         constexpr double slice = 0.02;
         return bench::fma_rate(slice) * slice / bench::cnn_flop_per_image;
       };
     }},
    {"one", "OneDevice<Cpu>, 1 x 64", [] { return make<One>(64); }},
    {"mirrored", "Mirrored<ThreadAllReduce>, 2 x 64", [] { return make<Mirrored>(128, std::size_t{2}); }},
    {"central", "CentralStorage<Cpu>, 2 x 64", [] { return make<Central>(128, std::size_t{2}); }},
    {"eight", "Mirrored<ThreadAllReduce>, 8 x 16", [] { return make<Mirrored>(128, std::size_t{8}); }},
    {"small", "Mirrored<ThreadAllReduce>, 2 x 16", [] { return make<Mirrored>(32, std::size_t{2}); }},
    {"one_owner", "OneDevice<Cpu>, 1 x 64, owners compute", [] { return make<One, Owners>(64); }},
    {"mirrored_owners", "Mirrored, 2 x 64, owners compute", [] { return make<Mirrored, Owners>(128, std::size_t{2}); }},
    {"central_owners", "CentralStorage, 2 x 64, owners compute",
     [] { return make<Central, Owners>(128, std::size_t{2}); }},
    {"eight_owners", "Mirrored, 8 x 16, owners compute", [] { return make<Mirrored, Owners>(128, std::size_t{8}); }},
    {"eight_central", "CentralStorage, 8 x 16, owners compute",
     [] { return make<Central, Owners>(128, std::size_t{8}); }},
};

constexpr bench::Quotient quotients[] = {
    {"1 replica over the multiply-add limit (0.70)", "one", "limit", true},
    {"2 replicas over 1 replica (1.9)", "mirrored", "one"},
    {"central storage, 2 replicas over 1 replica", "central", "one"},
    {"8 replicas over 2, same work in all (0.9)", "eight", "mirrored"},
    {"8 replicas over 2, same work for each", "eight", "small"},
    {"owners compute: 1 replica over the multiply-add limit (0.80)", "one_owner", "limit", true},
    {"owners compute: 2 replicas over 1 with stored gradients (2.0)", "mirrored_owners", "one"},
    {"owners compute: 2 replicas over 1", "mirrored_owners", "one_owner"},
    {"owners compute: central storage, 2 replicas over 1", "central_owners", "one_owner"},
    {"owners compute: 8 replicas over 2, same work in all (0.9)", "eight_owners", "mirrored_owners"},
    {"owners compute: central, 8 over mirrored 2, same work in all (0.9)", "eight_central", "mirrored_owners"},
};

}  // namespace

int main(int argc, char** argv) {
  return bench::compare_training_steps(
      argc, argv, contenders, quotients,
      {.title = "CNN training step, SGD, (goal)",
       .help = "Times the training step of the CNN, for all contenders in turns or for one."});
}
