/// How the workers that share a dataset agree.
#pragma once

#include <concepts>
#include <string_view>

#include <dist/core/future.hpp>

namespace dist::data {

/// One worker's part in what is agreed on in one pass over the data: Work that is started again for each question.
/// `start(holds)` asks whether something holds on any worker, on this one or not, and does not wait for what the others
/// say: `wait()` does, and `any()` only until that gives the answer. The next `start` waits for what was started before.
/// A worker on which it holds has the answer and may go on. Every other one waits for it first, because it may have to pass
/// on what it hears. Whether something holds on all is whether it fails to hold on any.
///
/// All workers start equally often. A pass may end before what it started is done, and takes it back without waiting.
/// A wait ends at a deadline, or when a worker is gone, with an exception; the pass is over then.
///
/// `note_thrown_by_data(what)` says what this worker's data threw: the others are told that, where it ends the pass.
template <class P>
concept AgreementPass = Future<P> && requires(P pass, bool holds, std::string_view what) {
  pass.start(holds);
  { pass.any() } -> std::same_as<bool>;
  pass.note_thrown_by_data(what);
};

/// Workers that can agree: each of them begins the same passes in the same order. Passes do not disturb each other, so
/// that one can begin in the loop over another.
template <class A>
concept Agreement = std::copy_constructible<A> && requires(const A& agreement) {
  { agreement.begin() } -> AgreementPass;
};

/// A single worker, which asks nobody.
struct NoAgreement {
  class Pass {
   public:
    void start(bool holds) noexcept { holds_ = holds; }
    static void wait() noexcept {}
    [[nodiscard]] static bool is_done() noexcept { return true; }
    [[nodiscard]] bool any() const noexcept { return holds_; }
    static void note_thrown_by_data(std::string_view) noexcept {}

   private:
    bool holds_ = false;
  };

  [[nodiscard]] static Pass begin() noexcept { return {}; }
};

}  // namespace dist::data
