// Reinforcement learning on two replicas: REINFORCE with a baseline (Williams, 1992) balances poles on carts. Each
// replica plays its share of the episodes, and all learn from all of them.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <dist/dist.hpp>
#include <dist/nn.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

namespace {

namespace nn = dist::nn;

constexpr std::size_t poles = 16, most_steps = 200;
constexpr float discount = 0.99F;

/// A pole on a cart that is pushed to the left or to the right (Barto, Sutton and Anderson, "Neuronlike adaptive
/// elements that can solve difficult learning control problems", 1983): position, velocity, angle, angular velocity.
using State = std::array<float, 4>;

/// Returns the state 20 ms later, in SI units.
State pushed(const State& state, std::int32_t action) {
  constexpr float gravity = 9.8F, pole_mass = 0.1F, mass = 1.1F, half_length = 0.5F, step = 0.02F;
  const auto [x, velocity, angle, rotation] = state;
  const float force = action == 1 ? 10.0F : -10.0F, sine = std::sin(angle), cosine = std::cos(angle);
  const float push = (force + pole_mass * half_length * rotation * rotation * sine) / mass;
  const float turn = (gravity * sine - cosine * push) / (half_length * (4.0F / 3 - pole_mass * cosine * cosine / mass));
  const float acceleration = push - pole_mass * half_length * turn * cosine / mass;
  return {x + step * velocity, velocity + step * acceleration, angle + step * rotation, rotation + step * turn};
}
/// True if the cart is within 2.4 m of the centre, and the pole within 12 degrees of upright.
bool is_up(const State& state) { return std::abs(state[0]) < 2.4F && std::abs(state[2]) < 0.2095F; }

/// One state, the action taken in it, and the discounted return that followed, between 0 and 1.
struct Moment {
  State state;
  std::int32_t action;
  float value;
};

/// Plays an episode with each of these poles. `scores(states)` returns two logits for each state.
std::vector<Moment> play(std::size_t update, dist::IndexRange mine, const auto& scores) {
  const dist::RandomStream random{/*seed=*/1, /*stream=*/update};
  std::vector<std::vector<Moment>> episodes(mine.size());
  std::vector<State> states(mine.size());
  std::vector<std::size_t> playing;  // poles that are up
  for (std::size_t pole = 0; pole < mine.size(); ++pole) {
    for (std::size_t i = 0; i < 4; ++i)
      states[pole][i] = 0.1F * random.uniform<float>(4 * (mine.begin + pole) + i) - 0.05F;
    playing.push_back(pole);
  }
  for (std::size_t step = 0; step < most_steps && !playing.empty(); ++step) {
    dist::Tensor<float> batch{{playing.size(), 4}};
    for (std::size_t row = 0; row < playing.size(); ++row)
      for (std::size_t i = 0; i < 4; ++i) batch[4 * row + i] = states[playing[row]][i];
    const auto logits = scores(batch);
    std::vector<std::size_t> still;
    for (std::size_t row = 0; row < playing.size(); ++row) {
      const std::size_t pole = playing[row];
      const float right = 1 / (1 + std::exp(logits[2 * row] - logits[2 * row + 1]));
      const std::size_t draw = (step + 1) * 4 * poles + mine.begin + pole;  // after the numbers of the first states
      const std::int32_t action = random.uniform<float>(draw) < right ? 1 : 0;
      episodes[pole].push_back({states[pole], action, 0});
      states[pole] = pushed(states[pole], action);
      if (is_up(states[pole])) still.push_back(pole);
    }
    playing = still;
  }
  std::vector<Moment> all;
  for (auto& episode : episodes) {
    float value = 0;  // of rewards of 1 for each step, times 1 - discount
    for (std::size_t i = episode.size(); i-- > 0;) episode[i].value = value = (1 - discount) + discount * value;
    all.insert(all.end(), episode.begin(), episode.end());
  }
  return all;
}

}  // namespace

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};

  using Policy = nn::Sequential<nn::Input<4>, nn::Dense<32, nn::Tanh>, nn::Dense<2>>;  // logits of left and right
  using Baseline = nn::Sequential<nn::Input<4>, nn::Dense<32, nn::Tanh>, nn::Dense<1>>;
  nn::Network<Policy, Backend> policy{strategy, /*seed=*/1};
  nn::Network<Baseline, Backend> baseline{strategy, /*seed=*/2};
  nn::Optimizer of_policy{strategy, policy, nn::Adam{.learning_rate = 1e-2F}};
  nn::Optimizer of_baseline{strategy, baseline, nn::Adam{.learning_rate = 1e-2F}};

  const auto update = [&](auto& replica, std::size_t number) {
    const auto mine = dist::shard_of(poles, replica.replica_id().index(), replica.num_replicas_in_sync());
    const auto moments = play(number, mine, [&](const dist::Tensor<float>& states) {
      return policy.forward(replica, states, nn::inference).values;
    });
    const std::size_t rows = moments.size();
    dist::Tensor<float> states{{rows, 4}}, returns{{rows, 1}}, advantages{{rows}};
    dist::Tensor<std::int32_t> actions{{rows}};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < 4; ++i) states[4 * row + i] = moments[row].state[i];
      returns[row] = moments[row].value;
      actions[row] = moments[row].action;
    }
    // [update]
    const std::size_t all = replica.all_reduce(dist::sum, rows);  // episodes have different lengths

    const auto expected = baseline.forward(replica, states);
    for (std::size_t row = 0; row < rows; ++row) advantages[row] = returns[row] - expected.values[row];
    baseline.backward(replica, nn::compute_loss(nn::MeanSquaredError{}, replica, expected, returns, all));
    of_baseline.apply_gradients(replica);

    // The loss -log p(action) of each moment, weighted by how much better than expected its return was.
    const auto logits = policy.forward(replica, states);
    policy.backward(replica, nn::sparse_categorical_crossentropy(replica, logits, actions, all, advantages));
    of_policy.apply_gradients(replica);
    // [/update]
    return static_cast<float>(rows);
  };

  const std::size_t updates = quick() ? 60 : 1'000;
  const auto mean_of = [](const std::vector<float>& steps, std::size_t first, std::size_t count) {
    float sum = 0;
    for (std::size_t i = first; i < first + count; ++i) sum += steps[i];
    return sum / static_cast<float>(count);
  };
  std::vector<float> steps;  // the mean length of each update's episodes, which is their return
  while (steps.size() < updates && (steps.size() < 20 || mean_of(steps, steps.size() - 10, 10) < 195)) {
    steps.push_back(strategy.reduce(dist::sum, strategy.run(update, steps.size())) / poles);
    if (steps.size() % 10 == 0)
      std::printf("update %zu: poles are up for %.1f steps of at most %zu\n", steps.size(),
                  mean_of(steps, steps.size() - 10, 10), most_steps);
  }
  const float first = mean_of(steps, 0, 5), last = mean_of(steps, steps.size() - 10, 10);
  std::printf("mean return %.1f -> %.1f\n", first, last);
  check(first < 40, "a policy that was not trained lets poles fall");
  check(last > (quick() ? 60 : 195), "the trained policy keeps poles up");
}
