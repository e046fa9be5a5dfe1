#include <dist/data/agreement.hpp>

#include <doctest/doctest.h>

#include <type_traits>

#include <data/workers.hpp>

using dist::data::Agreement;
using dist::data::NoAgreement;

static_assert(Agreement<NoAgreement> && Agreement<dist_test::MeetingAgreement>);
static_assert(!Agreement<int> && !Agreement<dist_test::Meeting>);
static_assert(std::is_empty_v<NoAgreement>);

TEST_CASE("a single worker has its own answer") {
  NoAgreement::Pass pass = NoAgreement::begin();
  for (const bool holds : {true, false}) {
    pass.start(holds);
    CHECK(pass.is_done());
    pass.wait();
    CHECK(pass.any() == holds);
    CHECK(pass.all() == holds);
  }
}
