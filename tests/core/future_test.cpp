#include <dist/core/future.hpp>

#include <doctest/doctest.h>

namespace {

struct Kettle {
  int degrees = 20;
  void wait() { degrees = 100; }
  [[nodiscard]] bool is_done() const { return degrees == 100; }
};
struct Misspelt : Kettle {
  void wait() = delete;
};
struct Unmovable : Kettle {
  Unmovable(const Unmovable&) = delete;
};
struct Vague {
  void wait() {}
  [[nodiscard]] int is_done() const { return 1; }
};

static_assert(dist::Future<Kettle>);
static_assert(!dist::Future<Misspelt> && !dist::Future<Unmovable> && !dist::Future<Vague> && !dist::Future<int>);

}  // namespace

TEST_CASE("wait returns when the work is done") {
  Kettle kettle;
  CHECK_FALSE(kettle.is_done());
  kettle.wait();
  CHECK(kettle.is_done());
}
