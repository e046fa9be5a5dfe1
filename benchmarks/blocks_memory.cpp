// Memory and time of a step of 12 equal blocks, written one by one, as a Repeat, and as a Repeat of Recomputed blocks: each
// block causal attention of 6 heads and two dense layers, for 8 sequences of 256 tokens with 384 channels.
//
//   bench_blocks_memory [STEPS]    each form in its own process, on one core
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <vector>

#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>

#include "support/arguments.hpp"
#include "support/clock.hpp"

namespace {

namespace nn = dist::nn;
constexpr std::size_t rows = 8, length = 256, channels = 384, heads = 6;

template <class Body>
using WithNorm = nn::Residual<nn::Sequential<nn::LayerNormalization<>, Body>>;
using Block = nn::Sequential<WithNorm<nn::MultiHeadAttention<heads, channels / heads, nn::AttendToPast>>,
                             WithNorm<nn::Sequential<nn::Dense<4 * channels, nn::GeluTanh>, nn::Dense<channels>>>>;
template <class... Blocks>
using Net = nn::Sequential<nn::Input<length, channels>, Blocks..., nn::Dense<8>>;

/// The resident memory of this process in bytes.
double resident() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  std::size_t all = 0, pages = 0;
  if (file == nullptr || std::fscanf(file, "%zu %zu", &all, &pages) != 2) return 0;
  std::fclose(file);
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Prints the memory that steps add to parameters, gradients and input, and the time of the fastest step.
template <class Network>
void measure(const char* title, int steps) {
  std::vector<float> parameters(Network::padded_count, 0.01F), gradients(Network::padded_count, 1.0F);
  dist::Tensor<float> x{dist::Shape{rows, length, channels}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) / 97;
  nn::Workspace<Network, nn::OneDnn, float> workspace;
  const double before = resident();
  double fastest = std::numeric_limits<double>::max();
  for (int step = 0; step < steps; ++step) {
    const double start = bench::seconds();
    const auto y = workspace.forward(parameters, x.view());
    for (float& element : y.gradient.elements()) element = 1;
    workspace.backward(parameters, gradients);
    fastest = std::min(fastest, bench::seconds() - start);
  }
  double squares = 0;
  for (const float element : gradients) squares += static_cast<double>(element) * element;
  std::printf("%-28s %8.0f MB %8.3f s   sum of the squares of the gradients %.10g\n", title,
              (resident() - before) / 1e6, fastest, squares);
}

/// Calls `body` in a new process. Returns true if it succeeds.
template <class Body>
bool in_process(Body&& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 1, "[STEPS]", "Measures memory and time of a step of 12 equal blocks."};
  const int steps = arguments.number(0, 4);
  const nn::OneDnn::State::OneThread one_thread;
  const bool all =
      in_process([&] {
        measure<Net<Block, Block, Block, Block, Block, Block, Block, Block, Block, Block, Block, Block>>("one by one",
                                                                                                         steps);
      }) &&
      in_process([&] { measure<Net<nn::Repeat<12, Block>>>("Repeat", steps); }) &&
      in_process([&] { measure<Net<nn::Repeat<12, nn::Recomputed<Block>>>>("Repeat of Recomputed", steps); });
  return all ? 0 : 1;
}
