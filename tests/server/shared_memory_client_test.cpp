#include <dist/server/shared_memory_client.hpp>

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/reduce_op.hpp>
#include <dist/core/threads.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard.hpp>

#include "support/processes.hpp"
#include "support/soon.hpp"
#include "support/what_throws.hpp"

namespace {

using dist::StoreError;
using dist::server::Problem;
using dist::server::PullRequest;
using dist::server::Pushed;
using dist::server::PushRequest;
using dist::server::Reach;
using dist::server::Shard;
using dist::server::ShardId;
using dist::server::ShardTable;
using dist::server::SharedMemoryAccess;
using dist::server::SharedMemoryClient;
using dist::server::SharedShard;
using dist::server::StoreMemory;
using dist::server::StoreMemoryHandle;

constexpr std::uint64_t incarnation = 7;
using Four = std::array<float, 4>;
constexpr Four ones{1, 1, 1, 1};

struct Pipe {
  Pipe() { REQUIRE(pipe2(ends, O_CLOEXEC) == 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    shut(0);
    shut(1);
  }
  void shut(std::size_t end) { close(std::exchange(ends[end], -1)); }

  int ends[2] = {-1, -1};
};

/// A store in a separate process, with shard 1: two rows of two floats.
class OtherStore {
 public:
  OtherStore() {
    said_.shut(1);
    told_.shut(0);
    std::vector<std::byte> bytes(4096);
    const ssize_t size = read(said_.ends[0], bytes.data(), bytes.size());
    REQUIRE(size > 0);
    dist::ArchiveReader reader{std::span{bytes}.first(static_cast<std::size_t>(size))};
    place = reader.get<StoreMemoryHandle>();
    found = reader.get<SharedShard>();
  }
  /// Returns a client in this process, if it can map the memory.
  [[nodiscard]] std::optional<SharedMemoryClient> reach(SharedMemoryAccess access = SharedMemoryAccess::write) const {
    return SharedMemoryClient::reach(place, incarnation, access, [this](ShardId id) {
      if (id != 1) throw StoreError(Problem::unknown_shard, "There is no such shard", "", "");
      return found;
    });
  }
  void kill() const { ::kill(process_[0], SIGKILL); }
  /// Ends the process normally.
  void end() {
    told_.shut(1);
    CHECK(process_.wait() == std::vector<int>{0});
  }

  StoreMemoryHandle place;
  SharedShard found;

 private:
  int serve() {
    told_.shut(1);
    const auto memory = std::make_shared<StoreMemory>(Reach::machine, incarnation);
    const Shard shard{memory, {1, "w", 2, 2, 0}, dist::io::ElementType::f32};
    const std::vector<std::byte> bytes = dist::ArchiveWriter{}.put(memory->place()).put(shard.found()).take();
    if (write(said_.ends[1], bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return 1;
    std::byte none;
    if (read(told_.ends[0], &none, 1) != 0) return 2;
    memory->close();
    return 0;
  }

  Pipe said_, told_;
  support::Processes process_{1, [this](std::size_t) { return serve(); }};
};

std::vector<Pushed> add_ones(const SharedMemoryClient& store) {
  return store.push(PushRequest{}.dense(1, dist::sum, std::span{ones}).parts());
}
Four elements_of(const SharedMemoryClient& store) {
  Four to{};
  static_cast<void>(store.pull(PullRequest{}.dense(1, std::span{to}).parts()));
  return to;
}

/// An update that ends its process.
struct EndsProcess {
  float operator()(float, float) const { _exit(0); }
};

}  // namespace

TEST_CASE("concurrent pushes of threads and processes to another process's store are all applied") {
  constexpr int pushes = 1000;
  OtherStore other;
  const auto add = [&](const SharedMemoryClient& store) {
    for (int i = 0; i < pushes; ++i) static_cast<void>(add_ones(store));
  };
  support::Processes clients(1, [&](std::size_t) {
    add(*other.reach());
    return 0;
  });
  const std::optional<SharedMemoryClient> store = other.reach();
  REQUIRE(store);
  CHECK(store->is_open());
  std::thread second{[&] { add(*store); }};
  add(*store);
  second.join();
  CHECK(clients.wait() == std::vector<int>{0});
  CHECK(elements_of(*store) == Four{3 * pushes, 3 * pushes, 3 * pushes, 3 * pushes});
  CHECK(add_ones(*store) == std::vector<Pushed>{{3 * pushes + 1, 0}});
  other.end();
  CHECK_FALSE(store->is_open());
}

TEST_CASE("a process that ends during a push is named to all others") {
  const OtherStore other;
  const std::optional<SharedMemoryClient> store = other.reach();
  REQUIRE(store);
  static_cast<void>(add_ones(*store));
  support::Processes client(1, [&](std::size_t) {
    static_cast<void>(other.reach()->push(PushRequest{}.dense(1, EndsProcess{}, std::span{ones}).parts()));
    return 1;
  });
  const pid_t number = client[0];
  CHECK(client.wait() == std::vector<int>{0});
  for (int again = 0; again < 2; ++again)
    CHECK(support::what_throws<StoreError>([&] { static_cast<void>(elements_of(*store)); }) ==
          "Shard 'w' (number 1) is partly updated (process " + std::to_string(number) +
              " ended during an update). Restart the job from its last checkpoint.");
}

TEST_CASE("a reader sees each shard atomically while others change it") {
  constexpr int pushes = 20'000;
  OtherStore other;
  const std::optional<SharedMemoryClient> store = other.reach(SharedMemoryAccess::read);
  REQUIRE(store);
  support::Processes client(1, [&](std::size_t) {
    const std::optional<SharedMemoryClient> writer = other.reach();
    for (int i = 0; i < pushes; ++i) static_cast<void>(add_ones(*writer));
    return 0;
  });
  std::uint64_t last = 0;
  std::size_t reads = 0, torn = 0, wrong = 0;
  while (last < pushes) {
    Four to{};
    const auto versions = store->pull(PullRequest{}.dense(1, std::span{to}, {.known = last}).parts());
    if (!versions) continue;
    if (versions->front() == last) continue;
    last = versions->front();
    ++reads;
    if (to != Four{to[0], to[0], to[0], to[0]}) ++torn;
    if (to[0] != static_cast<float>(last)) ++wrong;
  }
  MESSAGE(reads << " versions were read of " << pushes);
  CHECK(torn == 0);
  CHECK(wrong == 0);
  CHECK(client.wait() == std::vector<int>{0});
  const std::vector<std::int64_t> rows{1, 1, 0};
  std::vector<float> to(6);
  CHECK(store->pull(PullRequest{}.rows(1, rows, std::span{to}).parts()) == std::vector<std::uint64_t>{pushes});
  CHECK(to == std::vector<float>(6, pushes));
  other.end();
  CHECK_FALSE(store->is_open());
}

TEST_CASE("a client notices that the process of the store was killed") {
  for (const SharedMemoryAccess access : {SharedMemoryAccess::read, SharedMemoryAccess::write}) {
    const OtherStore other;
    const std::optional<SharedMemoryClient> store = other.reach(access);
    REQUIRE(store);
    CHECK(store->is_open());
    other.kill();
    CHECK(support::soon([&] { return !store->is_open(); }));
    CHECK_FALSE(other.reach(access));
  }
}

TEST_CASE("a store of this process is found without mapping, with the same errors as by messages") {
  const auto table = std::make_shared<ShardTable>(std::make_shared<StoreMemory>(Reach::process, incarnation));
  table->add(
      std::make_shared<Shard>(table->memory(), dist::server::ShardSpec{1, "w", 2, 2, 0}, dist::io::ElementType::f32));
  ShardTable::publish(incarnation, table);
  const auto nobody = [](ShardId) -> SharedShard { throw StoreError(Problem::unknown_shard, "", "", ""); };
  CHECK_FALSE(SharedMemoryClient::reach({}, incarnation + 1, SharedMemoryAccess::write, nobody));
  const std::optional<SharedMemoryClient> store =
      SharedMemoryClient::reach({}, incarnation, SharedMemoryAccess::write, nobody);
  REQUIRE(store);
  CHECK(add_ones(*store) == std::vector<Pushed>{{1, 0}});
  const auto problem_of = [](auto&& fn) {
    try {
      fn();
    } catch (const StoreError& error) {
      return error.problem();
    }
    return Problem{};
  };
  Four to{-1, -1, -1, -1};
  CHECK(problem_of([&] { static_cast<void>(store->pull(PullRequest{}.dense(2, std::span{to}).parts())); }) ==
        Problem::unknown_shard);
  CHECK(problem_of([&] {
          static_cast<void>(
              store->pull(PullRequest{}.dense(1, std::span{to}).dense(1, std::span{to}.first(3)).parts()));
        }) == Problem::wrong_size);
  CHECK(to == Four{-1, -1, -1, -1});
  CHECK(problem_of([&] {
          static_cast<void>(store->push(PushRequest{}.uniform(1, dist::sum, 1.0F, {.version = 9}).parts()));
        }) == Problem::malformed);
  CHECK(store->pull(PullRequest{}.dense(1, std::span{to}, {.known = 1}).parts()) == std::vector<std::uint64_t>{1});
  CHECK(to == Four{-1, -1, -1, -1});
  CHECK(elements_of(*store) == ones);
}
