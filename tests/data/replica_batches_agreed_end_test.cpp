#include <dist/data/agreement.hpp>
#include <dist/data/replica_batches.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <data/workers.hpp>

using dist::InvalidArgument;
using dist::data::AgreedEnd;
using dist::data::Cardinality;
using dist::data::NoAgreement;
using dist::data::Remainder;
using dist_test::Meeting;
using dist_test::MeetingAgreement;
using dist_test::on_workers;

namespace {

/// Returns the number of steps that run on each worker, if worker w has data for `steps[w]`.
std::vector<std::size_t> run_steps(Meeting& meeting, const std::vector<std::size_t>& steps, Remainder last_step,
                                   const std::vector<Cardinality>& said) {
  return on_workers(steps.size(), [&](std::size_t worker) {
    AgreedEnd end{MeetingAgreement{meeting}, said[worker], last_step};
    std::size_t run = 0;
    while (end.runs(run < steps[worker])) ++run;
    CHECK(end.is_over());
    CHECK_FALSE(end.runs(true));
    return run;
  });
}
std::vector<std::size_t> run_steps(const std::vector<std::size_t>& steps, Remainder last_step) {
  Meeting meeting{steps.size()};
  return run_steps(meeting, steps, last_step, std::vector<Cardinality>(steps.size(), Cardinality::unknown()));
}

using Counts = std::vector<std::size_t>;

/// The agreement of a single worker that records its notes for the others.
struct NotingAgreement {
  struct Pass : NoAgreement::Pass {
    std::vector<std::string>* notes;
    void note_thrown_by_data(std::string_view what) const { notes->emplace_back(what); }
  };
  [[nodiscard]] Pass begin() const { return {{}, notes}; }

  std::vector<std::string>* notes;
};

}  // namespace

TEST_CASE("a single worker ends with its own data, without notes (spec I24, I25)") {
  for (const Remainder last_step : {Remainder::keep, Remainder::drop})
    for (const Cardinality said : {Cardinality::known(3), Cardinality::unknown(), Cardinality::infinite()}) {
      AgreedEnd end{NoAgreement{}, said, last_step};
      for (int step = 0; step < 3; ++step) CHECK(end.runs(true));
      CHECK_FALSE(end.is_over());
      CHECK_FALSE(end.runs(false));
      CHECK(end.is_over());
      CHECK_FALSE(end.runs(true));
    }
}

TEST_CASE("an exception of the data is noted for the other workers and rethrown") {
  std::vector<std::string> notes;
  AgreedEnd end{NotingAgreement{&notes}, Cardinality::unknown(), Remainder::keep};
  CHECK(end.has_data([] { return true; }));
  CHECK_FALSE(end.has_data([] { return false; }));
  CHECK(notes.empty());
  CHECK_THROWS_WITH_AS(end.has_data([]() -> bool { throw std::runtime_error{"the file ends"}; }), "the file ends",
                       std::runtime_error);
  CHECK_THROWS_AS(end.has_data([]() -> bool { throw 7; }), int);
  CHECK(notes == std::vector<std::string>{"the file ends", "an exception that is not a std::exception"});
  AgreedEnd alone{NoAgreement{}, Cardinality::unknown(), Remainder::keep};
  CHECK_THROWS_AS(alone.has_data([]() -> bool { throw std::runtime_error{"the file ends"}; }), std::runtime_error);
}

TEST_CASE("keep: a step runs while any worker has data (spec I24)") {
  CHECK(run_steps({3}, Remainder::keep) == Counts{3});
  CHECK(run_steps({3, 3}, Remainder::keep) == Counts{3, 3});
  CHECK(run_steps({5, 2}, Remainder::keep) == Counts{5, 5});
  CHECK(run_steps({0, 7, 2, 3}, Remainder::keep) == Counts{7, 7, 7, 7});
  CHECK(run_steps({0, 0, 0}, Remainder::keep) == Counts{0, 0, 0});
}

TEST_CASE("drop: a step runs while all workers have data (spec I25)") {
  CHECK(run_steps({3}, Remainder::drop) == Counts{3});
  CHECK(run_steps({3, 3}, Remainder::drop) == Counts{3, 3});
  CHECK(run_steps({5, 2}, Remainder::drop) == Counts{2, 2});
  CHECK(run_steps({4, 7, 2, 3}, Remainder::drop) == Counts{2, 2, 2, 2});
  CHECK(run_steps({4, 0, 2}, Remainder::drop) == Counts{0, 0, 0});
}

TEST_CASE("every worker posts once per step, at its end, and for infinite data at the first step (spec I24)") {
  Meeting meeting{2};
  CHECK(run_steps(meeting, {5, 2}, Remainder::keep, {Cardinality::known(5), Cardinality::known(2)}) == Counts{5, 5});
  CHECK(meeting.posts() == 2 * (1 + 5 + 1));
}

TEST_CASE("workers agree on infinite data only once (spec I23)") {
  for (const Remainder last_step : {Remainder::keep, Remainder::drop}) {
    Meeting meeting{3};
    on_workers(3, [&](std::size_t) {
      AgreedEnd end{MeetingAgreement{meeting}, Cardinality::infinite(), last_step};
      for (int step = 0; step < 100; ++step) CHECK(end.runs(true));
      return 0;
    });
    CHECK(meeting.posts() == 3);
  }
}

TEST_CASE("workers with infinite data continue or end with a worker whose data are finite (spec I23, I24, I25)") {
  const std::vector<Cardinality> said{Cardinality::infinite(), Cardinality::known(0)};
  Meeting dropping{2};
  CHECK(run_steps(dropping, {1000, 0}, Remainder::drop, said) == Counts{0, 0});
  Meeting keeping{2};
  CHECK(run_steps(keeping, {50, 0}, Remainder::keep, said) == Counts{50, 50});
  // "Infinite" data that are empty are detected at the first step.
  Meeting empty{2};
  CHECK(run_steps(empty, {50, 0}, Remainder::keep, {Cardinality::infinite(), Cardinality::infinite()}) ==
        Counts{50, 50});
}

TEST_CASE("infinite data that end later are an error, because the other workers do not communicate (spec I23)") {
  Meeting meeting{1};
  AgreedEnd end{MeetingAgreement{meeting}, Cardinality::infinite(), Remainder::keep};
  CHECK(end.runs(true));
  CHECK_THROWS_WITH_AS(
      end.runs(false),
      "The data of a worker ended although its dataset is infinite (the other workers do not expect that, and would "
      "wait for this one). Make sure that the data of every worker has elements in each pass of repeat().",
      InvalidArgument);
}

TEST_CASE("keep: only a worker without data waits for the others (spec I24)") {
  Meeting meeting{2, std::chrono::milliseconds{400}};
  AgreedEnd mine{MeetingAgreement{meeting}, Cardinality::unknown(), Remainder::keep};
  AgreedEnd theirs{MeetingAgreement{meeting}, Cardinality::unknown(), Remainder::keep};
  on_workers(2, [&](std::size_t worker) { return (worker == 0 ? mine : theirs).runs(true); });
  CHECK(mine.runs(true));  // the other worker has not reached this step
  CHECK_THROWS_AS(mine.runs(true), dist::DeadlineExceeded);
  CHECK(theirs.runs(false));  // posted values remain
  CHECK_THROWS_AS(theirs.runs(false), dist::DeadlineExceeded);
}

TEST_CASE("drop: all workers wait for all others (spec I25)") {
  Meeting meeting{2, std::chrono::milliseconds{400}};
  AgreedEnd mine{MeetingAgreement{meeting}, Cardinality::unknown(), Remainder::drop};
  AgreedEnd theirs{MeetingAgreement{meeting}, Cardinality::unknown(), Remainder::drop};
  on_workers(2, [&](std::size_t worker) { return (worker == 0 ? mine : theirs).runs(true); });
  CHECK_THROWS_AS(mine.runs(true), dist::DeadlineExceeded);
}

TEST_CASE("a pass may end early, and passes may be nested (spec I21)") {
  Meeting meeting{2};
  const auto taken = on_workers(2, [&](std::size_t worker) {
    const MeetingAgreement agreement{meeting};
    Counts counts;
    for (const std::size_t have : {8U, 3U, 4U}) {
      AgreedEnd outer{agreement, Cardinality::unknown(), Remainder::keep};
      std::size_t steps = 0;
      while (steps < 5 && outer.runs(steps < have - worker)) {
        AgreedEnd inner{agreement, Cardinality::unknown(), Remainder::keep};
        std::size_t inside = 0;
        while (inside < 2 + steps && inner.runs(inside < 2 + worker)) ++inside;
        steps += 1;
        counts.push_back(inside);
      }
      counts.push_back(steps);
    }
    return counts;
  });
  CHECK(taken[0] == Counts{2, 3, 3, 3, 3, 5, 2, 3, 3, 3, 2, 3, 3, 3, 4});
  CHECK(taken[1] == taken[0]);
}
