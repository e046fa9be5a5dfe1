#include <dist/data/agreement.hpp>

#include <doctest/doctest.h>

#include <string_view>
#include <type_traits>

#include <data/workers.hpp>

using dist::data::Agreement;
using dist::data::AgreementPass;
using dist::data::NoAgreement;

namespace {

struct NotesNothing : NoAgreement::Pass {
  void note_thrown_by_data(std::string_view) = delete;
  void note_trown_by_data(std::string_view) {}
};

}  // namespace

static_assert(AgreementPass<NoAgreement::Pass> && !AgreementPass<NotesNothing>);
static_assert(Agreement<NoAgreement> && Agreement<dist_test::MeetingAgreement>);
static_assert(!Agreement<int> && !Agreement<dist_test::Meeting>);
static_assert(std::is_empty_v<NoAgreement>);

TEST_CASE("NoAgreement: the result is the worker's own value") {
  NoAgreement::Pass pass = NoAgreement::begin();
  for (const bool holds : {true, false}) {
    pass.start(holds);
    CHECK(pass.is_done());
    pass.wait();
    CHECK(pass.any() == holds);
    pass.note_thrown_by_data("the file ends");  // without effect
  }
}
