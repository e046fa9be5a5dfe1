#pragma once

#include <concepts>
#include <exception>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/batch_size.hpp>

namespace dist::data {

/// The end of one pass, where all workers meet (spec I24, I25): with Remainder::keep a step runs if any worker has data
/// for it, with Remainder::drop if all have.
///
/// A worker that has data knows the answer of `keep` beforehand, and one without data that of `drop`. It starts the
/// question and goes on, so that the others' answers arrive while it computes; only the others wait for them. Where all workers' data are infinite
/// nothing is asked after the first step (spec I23).
template <Agreement A>
class AgreedEnd {
 public:
  AgreedEnd(const A& agreement, Cardinality data, Remainder last_step)
      : pass_(agreement.begin()), is_infinite_(data.is_infinite()), last_step_(last_step) {}

  /// Whether this worker has data for the next step: what `fetch()` returns. What it throws is told to the others.
  template <class Fetch>
  bool has_data(Fetch&& fetch) {
    try {
      return fetch();
    } catch (const std::exception& error) {
      pass_.note_thrown_by_data(error.what());
      throw;
    } catch (...) {
      pass_.note_thrown_by_data("what is not a std::exception");
      throw;
    }
  }
  /// Whether the next step runs, of which this worker has data or not. All workers ask equally often. Throws what the
  /// agreement throws, and InvalidArgument when infinite data end.
  bool runs(bool has_data) {
    if (state_ == State::first) state_ = all_are_endless(has_data) ? State::endless : State::agreeing;
    const bool runs = state_ == State::endless ? goes_on(has_data) : state_ == State::agreeing && agree(has_data);
    if (!runs) state_ = State::ended;
    return runs;
  }
  /// Whether there is no further step; nothing is asked then.
  [[nodiscard]] bool is_over() const noexcept { return state_ == State::ended; }

 private:
  enum class State : unsigned char { first, agreeing, endless, ended };

  /// Every worker asks, whatever its own data are: a shard may be empty where those of the others repeat for ever.
  bool all_are_endless(bool has_data) {
    if constexpr (std::same_as<A, NoAgreement>) return false;
    return !any(!is_infinite_ || !has_data);
  }
  bool agree(bool has_data) { return last_step_ == Remainder::drop ? !any(!has_data) : any(has_data); }
  bool any(bool holds) {
    pass_.start(holds);
    return pass_.any();
  }
  static bool goes_on(bool has_data) {
    if (!has_data)
      throw InvalidArgument("The data of a worker end although they are infinite",
                            "the other workers do not expect that, and would wait for this one",
                            "Let every worker's data have elements in each round of repeat()");
    return true;
  }

  decltype(std::declval<const A&>().begin()) pass_;
  bool is_infinite_;
  Remainder last_step_;
  State state_ = State::first;
};

}  // namespace dist::data
