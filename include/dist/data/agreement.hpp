/// Agreement between the workers that share a dataset.
#pragma once

#include <concepts>
#include <string_view>

#include <dist/core/future.hpp>

namespace dist::data {

/// One worker's part in the decisions of a pass. A decision is the logical OR of one Boolean per worker. `start(holds)`
/// waits for the previous decision, and begins one with this worker's value, without waiting for the others. `any()`
/// waits for the result, `wait()` for the end of this worker's part. If its value is true, a worker has the result at
/// once; otherwise it must wait, because it may have to forward the result.
///
/// All workers start the same number of decisions. A pass that ends early cancels a pending decision without waiting. A
/// wait throws at a deadline or if a worker has exited; the pass is over then.
///
/// `note_thrown_by_data(what)` records an exception of this worker's data, to report it to the others if it ends the
/// pass.
template <class P>
concept AgreementPass = Future<P> && requires(P pass, bool holds, std::string_view what) {
  pass.start(holds);
  { pass.any() } -> std::same_as<bool>;
  pass.note_thrown_by_data(what);
};

/// Workers that make common decisions. All begin the same passes in the same order. Passes may be nested.
template <class A>
concept Agreement = std::copy_constructible<A> && requires(const A& agreement) {
  { agreement.begin() } -> AgreementPass;
};

/// The agreement of a single worker, which needs no communication.
struct NoAgreement {
  /// A pass whose decisions are this worker's own values.
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
