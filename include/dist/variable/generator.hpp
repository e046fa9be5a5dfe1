#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/random.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/variable/policies.hpp>

namespace dist {

/// The state of a replica's random numbers, as saved in checkpoints.
struct GeneratorState {
  std::uint64_t seed = 0;    ///< of the Generator, the same on all replicas
  std::uint64_t stream = 0;  ///< separates the replicas' numbers
  std::uint64_t drawn = 0;   ///< count of numbers drawn

  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

/// Random numbers in replica functions, with a separate stream per replica (spec R04):
///
///     dist::Generator random{strategy, 42};
///     strategy.run([&](auto& replica) { random.normal(replica, noise.elements()); });
///
/// A replica's numbers depend only on the seed, the replica's id and the count of numbers drawn, not on the number of
/// replicas. Each replica has its own state under every strategy, so drawing needs no communication. A draw outside
/// replica functions returns replica 0's numbers and advances the states of all replicas; it is a collective call of
/// the processes.
///
/// Without a strategy, use `RandomStream`.
template <class S>
class Generator {
 public:
  /// Throws OutOfMemory.
  explicit Generator(S& strategy, std::uint64_t seed, const std::string& name = "generator")
      : state_(strategy.template host_buffer<GeneratorState>(Shape{}, concat(name, "/state"))) {
    const auto ids = strategy.values_from_function([](ValueContext context) { return context.replica_id(); });
    std::size_t local = 0;
    for (const ReplicaId id : strategy.local_results(ids))
      set_state(strategy.scope(), local++, {.seed = seed, .stream = streams + id.index(), .drawn = 0});
  }

  /// Fills `numbers` with uniform numbers in [low, high), or with `low` if both are equal. Throws InvalidArgument if
  /// `low` is above `high`, or one is NaN.
  template <class Context, std::floating_point T>
  void uniform(const Context& context, std::span<T> numbers, std::type_identity_t<T> low = 0,
               std::type_identity_t<T> high = 1) {
    if (!(low <= high))
      throw InvalidArgument("Generator::uniform was given an empty range", concat("from ", low, " to below ", high),
                            "Give a high that is not below low");
    fill(context, numbers, [=](const RandomStream& stream, std::uint64_t index) {
      const T number = low + (high - low) * stream.uniform<T>(index);
      return number < high ? number : low;  // rounding may have reached `high`
    });
  }
  /// Fills `numbers` with normally distributed numbers of mean `center` and standard deviation `deviation`.
  template <class Context, std::floating_point T>
  void normal(const Context& context, std::span<T> numbers, std::type_identity_t<T> center = 0,
              std::type_identity_t<T> deviation = 1) {
    fill(context, numbers,
         [=](const RandomStream& stream, std::uint64_t index) { return center + deviation * stream.normal<T>(index); });
  }
  /// Fills `numbers` with uniform integers in [low, high). Throws InvalidArgument if the range is empty.
  template <class Context, std::integral T>
  void integers(const Context& context, std::span<T> numbers, std::type_identity_t<T> low,
                std::type_identity_t<T> high) {
    if (low >= high)
      throw InvalidArgument("Generator::integers was given an empty range", concat("from ", +low, " to below ", +high),
                            "Give a high that is above low");
    const std::uint64_t count = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    fill(context, numbers, [=](const RandomStream& stream, std::uint64_t index) {
      return static_cast<T>(static_cast<std::uint64_t>(low) + stream.below(count, index));
    });
  }

  /// Returns one uniform number in [0, 1).
  template <std::floating_point T = float, class Context>
  [[nodiscard]] T uniform(const Context& context) {
    T number{};
    uniform(context, std::span<T>{&number, 1});
    return number;
  }
  /// Returns one normally distributed number, with mean 0 and standard deviation 1.
  template <std::floating_point T = float, class Context>
  [[nodiscard]] T normal(const Context& context) {
    T number{};
    normal(context, std::span<T>{&number, 1});
    return number;
  }
  /// Returns one uniform integer in [low, high). Throws InvalidArgument if the range is empty.
  template <std::integral T = std::int64_t, class Context>
  [[nodiscard]] T integer(const Context& context, std::type_identity_t<T> low, std::type_identity_t<T> high) {
    T number{};
    integers(context, std::span<T>{&number, 1}, low, high);
    return number;
  }

  /// Skips `count` numbers of this replica; outside replica functions, of every replica.
  void skip(const InReplica auto& replica, std::uint64_t count) { state_.component(replica)[0].drawn += count; }
  /// Skips `count` numbers of every replica of this process.
  void skip(const InCrossReplica auto& context, std::uint64_t count) {
    for (std::size_t local = 0; local < context.strategy().num_local_replicas(); ++local)
      state_.component(context, local)[0].drawn += count;
  }

  /// Returns the state of this replica, for example for a checkpoint.
  [[nodiscard]] GeneratorState state(const InReplica auto& replica) const { return state_.component(replica)[0]; }
  /// Returns the state of a replica of this process.
  [[nodiscard]] GeneratorState state(const InCrossReplica auto& context, std::size_t local_replica) const {
    return state_.component(context, local_replica)[0];
  }
  /// Continues from `state`, which may be from any strategy with any number of replicas.
  void set_state(const InCrossReplica auto& context, std::size_t local_replica, const GeneratorState& state) {
    state_.component(context, local_replica)[0] = state;
  }

  /// Returns the state for a checkpoint: a row with seed, stream and count per replica. A collective call of the
  /// processes.
  [[nodiscard]] Tensor<std::uint64_t> whole(const InCrossReplica auto& context) const {
    S& strategy = context.strategy();
    const std::size_t replicas = strategy.num_replicas_in_sync();
    Tensor<std::uint64_t> rows{{replicas + absent_.size(), words_of_state}};
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
      put(rows.view().row(strategy.first_local_replica() + local).elements(), state(context, local));
    detail::run_collectively(strategy, [&] {
      strategy.workers().all_reduce(sum, std::span<std::uint64_t>{rows.data(), replicas * words_of_state});
    });
    for (std::size_t i = 0; i < absent_.size(); ++i) put(rows.view().row(replicas + i).elements(), absent_[i]);
    return rows;
  }
  /// Throws ShapeMismatch if `restore` does not accept the shape.
  void require_restorable(const Shape& shape) const {
    if (shape.rank() != 2 || shape[0] == 0 || shape[1] != words_of_state)
      throw ShapeMismatch(concat("The states given do not fit generator '", state_.name(), "'"),
                          concat("their shape is ", to_string(shape)),
                          "Give the result of whole, a row of 3 numbers for each replica");
  }
  /// Restores the result of `whole`, with any number of replicas: additional replicas start new streams with replica
  /// 0's seed, and rows of missing replicas are kept for the next `whole`. Throws ShapeMismatch if the rows have
  /// another shape.
  void restore(const InCrossReplica auto& context, TensorView<const std::uint64_t> rows) {
    require_restorable(rows.shape());
    const auto row = [&](std::size_t replica) {
      const auto words = rows.row(replica).elements();
      return GeneratorState{.seed = words[0], .stream = words[1], .drawn = words[2]};
    };
    S& strategy = context.strategy();
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
      const std::size_t id = strategy.first_local_replica() + local;
      set_state(context, local,
                id < rows.rows() ? row(id) : GeneratorState{.seed = row(0).seed, .stream = streams + id, .drawn = 0});
    }
    absent_.clear();
    for (std::size_t id = strategy.num_replicas_in_sync(); id < rows.rows(); ++id) absent_.push_back(row(id));
  }

 private:
  static constexpr std::size_t words_of_state = 3;

  /// Separate streams, so that shuffles and weights with the same seed use different numbers.
  static constexpr std::uint64_t streams = std::uint64_t{0x67656e65} << 32;

  static void put(std::span<std::uint64_t> words, const GeneratorState& state) {
    words[0] = state.seed;
    words[1] = state.stream;
    words[2] = state.drawn;
  }

  /// Returns the state of replica 0, which may be in another process.
  [[nodiscard]] GeneratorState state_of_first(const InCrossReplica auto& context) const {
    const GeneratorState here = state(context, 0);
    if constexpr (S::wraps_values) {
      S& strategy = context.strategy();
      if (strategy.num_local_replicas() < strategy.num_replicas_in_sync())
        return strategy.reduce(sum, strategy.values_from_function([&](ValueContext value) {
          return value.replica_id().index() == 0 ? here : GeneratorState{};
        }));
    }
    return here;
  }

  template <class Context, class T, class Draw>
  void fill(const Context& context, std::span<T> numbers, const Draw& draw) {
    constexpr bool in_replica = InReplica<Context>;
    static_assert(in_replica || InCrossReplica<Context>,
                  "a Generator takes the context it is called in: the replica function's first argument, or "
                  "strategy.scope() outside replica functions");
    if constexpr (in_replica) {
      draw_from(state(context), numbers, draw);
      skip(context, numbers.size());
    } else if constexpr (InCrossReplica<Context>) {
      draw_from(state_of_first(context), numbers, draw);
      skip(context, numbers.size());
    }
  }
  template <class T, class Draw>
  static void draw_from(const GeneratorState& state, std::span<T> numbers, const Draw& draw) {
    const RandomStream stream{state.seed, state.stream};
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = draw(stream, state.drawn + i);
  }

  decltype(std::declval<S&>().template host_buffer<GeneratorState>(Shape{})) state_;
  std::vector<GeneratorState> absent_;  // of replicas in the restored state that this strategy does not have
};

/// Deduces the strategy.
template <Strategy S>
Generator(S&, std::uint64_t) -> Generator<S>;
/// Deduces the strategy.
template <Strategy S>
Generator(S&, std::uint64_t, const std::string&) -> Generator<S>;

template <detail::NoStrategy S>
struct Generator<S> : detail::Refused {
  using Refused::Refused;
  static_assert(detail::always_false<S>, DIST_NEEDS_STRATEGY("a Generator", "dist::Generator random{strategy, seed}"));
};
/// Rejects arguments that are not strategies.
template <detail::NoStrategy First, class... Rest>
Generator(First&&, Rest&&...) -> Generator<std::remove_reference_t<First>>;

}  // namespace dist
