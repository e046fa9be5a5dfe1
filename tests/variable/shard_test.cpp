#include <dist/variable/shard.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

namespace {

using Scope = decltype(std::declval<dist::Default&>().scope());
using Variable = decltype(std::declval<dist::Default&>().variable<float>(dist::Shape{}));

struct Nothing {
  void wait() {}
  [[nodiscard]] bool is_done() const { return true; }
};
struct Values : Nothing {
  [[nodiscard]] dist::TensorView<const float> values() const { return {}; }
};
using Rows = std::span<const std::int64_t>;
using Slices = dist::IndexedSlicesView<float>;

/// The minimal shard with asynchronous operations.
struct Archetype {
  using Element = float;
  [[nodiscard]] std::string name() const { return "archetype"; }
  [[nodiscard]] dist::Shape shape() const { return {1}; }
  [[nodiscard]] Values start_read(const Scope&) const { return {}; }
  [[nodiscard]] Values start_gather(const Scope&, Rows) const { return {}; }
  Nothing start_write(const Scope&, const auto&, auto) { return {}; }
  Nothing start_scatter(const Scope&, const Slices&, auto) { return {}; }
};
/// The minimal shard with batched operations.
struct Together : Archetype {
  struct Context {
    std::vector<std::string>* log;
    void send() const { log->push_back("send"); }
  };
  using Archetype::start_gather;
  using Archetype::start_read;
  [[nodiscard]] Values start_read(const Context& in) const { return in.log->push_back("read"), Values{}; }
  [[nodiscard]] Values start_gather(const Context&, Rows) const { return {}; }
  Nothing start_write(const auto&, const auto&, auto) { return {}; }
  Nothing start_scatter(const auto&, const Slices&, auto) { return {}; }
  [[nodiscard]] static Context together(const Scope&) { return {log()}; }
  [[nodiscard]] static std::vector<std::string>* log() {
    static std::vector<std::string> log;
    return &log;
  }
};
struct SendsNothing : Together {
  [[nodiscard]] static Scope together(const Scope& scope) { return scope; }
};
struct StartsNothingTogether : Archetype {
  [[nodiscard]] static Together::Context together(const Scope&) { return {nullptr}; }
};
struct WithoutShape {
  using Element = float;
  [[nodiscard]] std::string name() const { return ""; }
};
struct OfText : Archetype {
  using Element = std::string;
};
struct ReadsNothing : Archetype {
  [[nodiscard]] Nothing start_read(const Scope&) const { return {}; }
};
struct GathersNothing : Archetype {
  [[nodiscard]] Nothing start_gather(const Scope&, Rows) const { return {}; }
};
struct WritesAtOnce : Archetype {
  void start_write(const Scope&, const auto&, auto) {}
};
struct ScattersAtOnce : Archetype {
  void start_scatter(const Scope&, const Slices&, auto) {}
};

static_assert(dist::Shard<Variable> && !dist::StartsOperations<Variable, Scope>);
static_assert(dist::Shard<Archetype> && dist::StartsOperations<Archetype, Scope>);
static_assert(!dist::StartsOperations<Archetype, int>, "operations are those of a context");
static_assert(!dist::Shard<WithoutShape> && !dist::Shard<OfText> && !dist::Shard<float>);
static_assert(dist::Shard<ReadsNothing> && !dist::StartsOperations<ReadsNothing, Scope>);
static_assert(!dist::StartsOperations<GathersNothing, Scope> && !dist::StartsOperations<WritesAtOnce, Scope>);
static_assert(!dist::StartsOperations<ScattersAtOnce, Scope>);

static_assert(dist::StartsTogether<Together, Scope> && !dist::StartsTogether<Archetype, Scope>);
static_assert(!dist::StartsTogether<SendsNothing, Scope> && !dist::StartsTogether<StartsNothingTogether, Scope>);

/// A Future that logs its wait, and then optionally fails.
struct Logged {
  std::vector<std::size_t>* log;
  std::size_t shard;
  bool fails;

  void wait() {
    log->push_back(shard);
    if (fails) throw std::runtime_error(dist::concat("shard ", shard));
  }
  [[nodiscard]] bool is_done() const { return shard != 1; }
};

}  // namespace

TEST_CASE("all operations complete even after a failure, and the first error is thrown") {
  std::vector<std::size_t> waited, used;
  dist::detail::PendingOnShards works(4, [&](std::size_t shard) {
    return Logged{&waited, shard, shard == 1 || shard == 3};
  });
  CHECK(!works.is_done());
  CHECK_THROWS_WITH_AS(works.wait([&](std::size_t shard, const Logged&) { used.push_back(shard); }), "shard 1",
                       std::runtime_error);
  CHECK(waited == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(used == std::vector<std::size_t>{0});
}

TEST_CASE("the continuation of an operation may fail") {
  std::vector<std::size_t> waited;
  dist::detail::PendingOnShards works(2, [&](std::size_t shard) { return Logged{&waited, shard, false}; });
  CHECK_THROWS_AS(works.wait([](std::size_t, const Logged&) { throw std::logic_error("no"); }), std::logic_error);
  CHECK(waited == std::vector<std::size_t>{0, 1});
}

TEST_CASE("earlier operations complete before destruction, and before the error of a failed start") {
  std::vector<std::size_t> waited;
  {
    dist::detail::PendingOnShards works(2, [&](std::size_t shard) { return Logged{&waited, shard, true}; });
  }
  CHECK(waited == std::vector<std::size_t>{0, 1});
  const auto start = [&](std::size_t shard) {
    if (shard == 1) throw std::logic_error("cannot");
    return Logged{&waited, shard, false};
  };
  CHECK_THROWS_WITH_AS(dist::detail::PendingOnShards(2, start), "cannot", std::logic_error);
  CHECK(waited == std::vector<std::size_t>{0, 1, 0});
}

TEST_CASE("batched operations start on all shards, and are then sent") {
  dist::Default strategy;
  const auto start = [](const auto& in, std::size_t) { return Together{}.start_read(in); };
  dist::detail::start_on_shards<Together>(strategy.scope(), 2, start).wait();
  CHECK(*Together::log() == std::vector<std::string>{"read", "read", "send"});
}
