// The suite of parameter server clients over every transport (dist/server/client.hpp). A transport joins in its own
// test file with a kit and one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, TheKit);
// A kit has
// - `Transport`;
// - `endpoint()`: an unused endpoint;
// - `shared_memory`, if clients use the memory of their server in another way than by default;
// - `Peer{endpoint}`: a server with `server::store_methods`, in a separate process if the transport supports it;
//   `kill()` terminates it abruptly.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dist/server/client.hpp>
#include <dist/server/shard_server.hpp>

#include <doctest/doctest.h>

#include <dist/core/float16.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>

#include "support/soon.hpp"
#include "support/what_throws.hpp"

namespace conformance {

namespace server = dist::server;
using server::DuplicateRows;
using server::Problem;
using server::PullRequest;
using server::Pushed;
using server::PushRequest;
using support::what_throws;

/// A server and a client of it.
template <class Kit>
struct ServerPair {
  using Client = server::Client<typename Kit::Transport>;

  ServerPair() { greet(client); }
  static server::ClientOptions options() {
    server::ClientOptions options;
    options.wait_for_server = std::chrono::seconds{60};
    if constexpr (requires { Kit::shared_memory; }) options.shared_memory = Kit::shared_memory;
    return options;
  }
  static void greet(Client& its) { its.greet(); }

  dist::net::Endpoint endpoint = Kit::endpoint();
  std::optional<typename Kit::Peer> peer{std::in_place, endpoint};
  Client client{3, endpoint, options()};
};

template <class T, class Client>
std::vector<T> pulled(Client& client, server::ShardId shard, std::size_t size, std::uint32_t array = 0) {
  std::vector<T> values(size);
  client.pull(shard, std::span{values}, {.array = array});
  return values;
}
template <class T>
std::span<const T> given(const std::vector<T>& values) {
  return values;
}
template <class Fn>
Problem problem_of(Fn&& fn) {
  try {
    fn();
  } catch (const dist::StoreError& error) {
    return error.problem();
  }
  FAIL("nothing was thrown");
  return Problem{};
}

struct RowNumber {
  float scale;
  float operator()(std::uint64_t element) const { return scale * static_cast<float>(element); }
};

// spec J07: a function creates the part of a variable in a shard, from its offset on.
template <class Kit>
void shards_are_created_and_pulled() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  client.create({1, "one", 2, 3}, 1.5f);
  client.create({2, "two", 3, 1}, given(std::vector<std::int64_t>{4, 5, 6}));
  client.template create_filled<float>({3, "three", 2, 2, 10}, RowNumber{0.5f});
  client.template create_filled<double>({4, "four", 1, 3, 7}, [](std::uint64_t first, std::span<double> elements) {
    std::iota(elements.begin(), elements.end(), static_cast<double>(first));
  });
  client.create({5, "", 1, 1}, dist::BFloat16(2.0f));
  client.create({6, "none", 0, 4}, true);
  CHECK(pulled<float>(client, 1, 6) == std::vector<float>(6, 1.5f));
  CHECK(pulled<std::int64_t>(client, 2, 3) == std::vector<std::int64_t>{4, 5, 6});
  CHECK(pulled<float>(client, 3, 4) == std::vector<float>{5, 5.5f, 6, 6.5f});
  CHECK(pulled<double>(client, 4, 3) == std::vector<double>{7, 8, 9});
  CHECK(pulled<dist::BFloat16>(client, 5, 1) == std::vector<dist::BFloat16>{dist::BFloat16(2.0f)});
  client.pull(6, std::span<bool>{});

  const std::vector<server::ShardInfo> all = client.list();
  REQUIRE(all.size() == 6);
  CHECK(all[2].spec.name == "three");
  CHECK(all[2].spec.offset == 10);
  CHECK(all[1].type == dist::io::ElementType::i64);
  client.drop({1, 3});
  CHECK(client.list().size() == 4);
  CHECK(problem_of([&] { client.drop({2, 3}); }) == Problem::unknown_shard);
  CHECK(client.list().size() == 4);
}

template <class Kit>
void pushes_and_pulls() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  client.create({1, "w", 3, 2}, 10.0f);
  client.create({2, "n", 2, 1}, 100);
  const std::vector<float> ones(6, 1);
  const std::vector<int> numbers{4, 5};
  const std::vector<std::int64_t> rows{2, 0, 2};
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  // Several shards in one message, in the given order.
  const auto pushed = client.push(PushRequest{}
                                      .dense(1, dist::sum, given(ones))
                                      .dense(2, dist::detail::Subtract{}, given(numbers))
                                      .rows(1, dist::sum, rows, given(values), DuplicateRows::in_order));
  CHECK(pushed == std::vector<Pushed>{{1, 0}, {1, 0}, {2, 0}});
  std::vector<float> w(6), some(4);
  std::vector<int> n(2);
  const std::vector<std::int64_t> wanted{2, 1};
  const auto versions =
      client.pull(PullRequest{}.dense(1, std::span{w}).rows(1, wanted, std::span{some}).dense(2, std::span{n}));
  CHECK(versions == std::vector<std::uint64_t>{2, 2, 1});
  CHECK(w == std::vector<float>{14, 15, 11, 11, 17, 19});
  CHECK(some == std::vector<float>{17, 19, 11, 11});
  CHECK(n == std::vector<int>{96, 95});
  client.push(PushRequest{}.rows(1, dist::detail::Assign{}, rows, given(values), DuplicateRows::in_order));
  CHECK(pulled<float>(client, 1, 6) == std::vector<float>{3, 4, 11, 11, 5, 6});
  client.push(2, dist::detail::Assign{}, given(std::vector<int>{7, 8}));
  CHECK(pulled<int>(client, 2, 2) == std::vector<int>{7, 8});
  CHECK(client.push(PushRequest{}).empty());
  CHECK(client.pull(PullRequest{}).empty());
}

/// A pull with the caller's version returns the shards that have changed since, with their slots and rows.
template <class Kit>
void pulls_of_what_changed() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  client.create({1, "w", 2, 2}, 1.0f);
  client.create({2, "v", 3, 1}, 2.0);
  client.ensure_slots(1, 0, {5});
  std::array<float, 4> w{}, slot{};
  std::array<double, 3> v{};
  CHECK(client.pull(1, std::span{w}) == 0);
  CHECK(client.pull(2, std::span{v}) == 0);
  client.push(2, dist::sum, std::span{v});
  w.fill(-1);
  const std::vector<std::int64_t> last{1};
  std::array<float, 2> row{-1, -1};
  const auto pull = [&](std::uint64_t known) {
    return client.pull(PullRequest{}
                           .dense(1, std::span{w}, {.known = known})
                           .dense(2, std::span{v}, {.known = 0})
                           .dense(1, std::span{slot}, {.known = known, .array = 1})
                           .rows(1, last, std::span{row}, {.known = known}));
  };
  CHECK(pull(0) == std::vector<std::uint64_t>{0, 1, 0, 0});
  CHECK(w == std::array<float, 4>{-1, -1, -1, -1});
  CHECK(v == std::array<double, 3>{4, 4, 4});
  CHECK(slot == std::array<float, 4>{});
  CHECK(row == std::array<float, 2>{-1, -1});
  CHECK(pull(server::unknown_version) == std::vector<std::uint64_t>{0, 1, 0, 0});
  CHECK(w == std::array<float, 4>{1, 1, 1, 1});
  CHECK(slot == std::array<float, 4>{5, 5, 5, 5});
  CHECK(row == std::array<float, 2>{1, 1});
  CHECK(problem_of([&] { pull(1); }) == Problem::malformed);
}

/// One value for all elements is sent once.
template <class Kit>
void uniform_pushes() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  constexpr std::size_t count = 3 * 4096 + 1;
  client.create({1, "w", count, 1}, 1.0f);
  client.create({2, "b", 3, 1}, false);
  client.create({3, "n", 2, 1}, 6);
  client.ensure_slots(1, 0, {1});
  const PushRequest request = std::move(PushRequest{}
                                            .uniform(1, dist::sum, 2.0f)
                                            .uniform(1, dist::nn::SGD::Momentum<float, false>{0.5f, 0.5f}, 4.0f)
                                            .uniform(2, dist::detail::Assign{}, true));
  server::detail::Message message;
  server::detail::encode(request.parts(), message);
  CHECK(dist::rpc::size_of(message.pieces()) < 500);
  CHECK(client.push(request) == std::vector<Pushed>{{1, 0}, {2, 0}, {1, 0}});
  // The velocity is 0.5 * 1 - 0.5 * 4.
  CHECK(pulled<float>(client, 1, count) == std::vector<float>(count, 1.5f));
  CHECK(pulled<float>(client, 1, count, 1) == std::vector<float>(count, -1.5f));
  std::array<bool, 3> b{};
  client.pull(2, std::span{b});
  CHECK(b == std::array<bool, 3>{true, true, true});
  CHECK(problem_of([&] { client.push(PushRequest{}.uniform(3, dist::detail::Divide{}, 0)); }) == Problem::wrong_value);
  CHECK(problem_of([&] { client.push(PushRequest{}.uniform(3, dist::sum, 1.0f)); }) == Problem::wrong_type);
}

/// A message that the transport splits, within elements and shards.
template <class Kit>
void large_messages() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  constexpr std::size_t shards = 3, count = (7 << 20) / sizeof(std::int32_t) + 1;  // 21 MiB
  std::vector<std::vector<std::int32_t>> values, to;
  PushRequest push;
  PullRequest pull;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    client.create({shard, "large", count, 1}, 1);
    client.create({10 + shard, "between", 1, 1}, false);
    values.emplace_back(count);
    std::iota(values.back().begin(), values.back().end(), static_cast<std::int32_t>(shard));
    to.emplace_back(count);
  }
  bool between[shards] = {};
  for (std::size_t shard = 0; shard < shards; ++shard) {
    push.dense(shard, dist::sum, std::span{values[shard]}).uniform(10 + shard, dist::detail::Assign{}, true);
    pull.dense(shard, std::span{to[shard]}).dense(10 + shard, std::span{between}.subspan(shard, 1));
  }
  CHECK(client.push(push) == std::vector<Pushed>(2 * shards, Pushed{1, 0}));
  CHECK(client.pull(pull) == std::vector<std::uint64_t>(2 * shards, 1));
  for (std::size_t shard = 0; shard < shards; ++shard) {
    CHECK(between[shard]);
    for (std::int32_t& value : values[shard]) ++value;
    CHECK((to[shard] == values[shard]));
  }
}

template <class Kit>
void optimizers_have_slots() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  constexpr std::size_t count = 10'000;
  client.create({1, "w", count / 10, 10}, 1.0);
  client.ensure_slots(1, 0, {0, 0.5});
  client.ensure_slots(1, 2, {3});
  CHECK(pulled<double>(client, 1, count, 2)[5] == 0.5);
  CHECK(pulled<double>(client, 1, count, 3)[9] == 3.0);
  using Adam = dist::nn::Adam::Update<double, false>;
  std::vector<double> weights(count, 1), gradient(count), first(count), second(count, 0.5);
  for (int step = 1; step <= 3; ++step) {
    const Adam adam{0.1 / step, 0.1, 0.001, 1e-7};
    for (std::size_t i = 0; i < count; ++i) gradient[i] = std::sin(static_cast<double>(i) + step);
    client.push(1, adam, given(gradient));
    for (std::size_t i = 0; i < count; ++i) {
      double slots[2] = {first[i], second[i]};
      weights[i] = adam(weights[i], gradient[i], slots);
      first[i] = slots[0];
      second[i] = slots[1];
    }
  }
  // Fused multiply-add rounds once where other processors round twice.
  const auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::abs(a[i] - b[i]) > 1e-12) return false;
    return a.size() == b.size();
  };
  CHECK(close(pulled<double>(client, 1, count), weights));
  CHECK(close(pulled<double>(client, 1, count, 1), first));
  CHECK(close(pulled<double>(client, 1, count, 2), second));
  CHECK(pulled<double>(client, 1, count, 3) == std::vector<double>(count, 3));
  // Existing slots keep their values.
  client.ensure_slots(1, 0, {0, 0});
  CHECK(close(pulled<double>(client, 1, count, 2), second));
  // A duplicate row is updated once, by the sum.
  const std::vector<std::int64_t> rows{4, 4};
  const std::vector<double> halves(20, 0.5);
  client.push(PushRequest{}.rows(1, dist::nn::SGD::Plain<double>{2}, rows, given(halves), DuplicateRows::summed));
  CHECK(pulled<double>(client, 1, count)[45] == doctest::Approx(weights[45] - 2));
  CHECK(pulled<double>(client, 1, count)[55] == doctest::Approx(weights[55]));
}

template <class Kit>
void mistakes() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  client.create({1, "w", 3, 2}, 1.0f);
  const auto message = [](auto fn) { return what_throws<dist::StoreError>(fn); };
  const std::vector<float> five(5), six(6), two(2);
  const std::vector<double> doubles(6);
  std::vector<float> to(6);
  CHECK(message([&] { client.push(9, dist::sum, given(six)); }) ==
        "This server has no shard 9 (it was not created, or it was dropped). Use a variable only between its creation "
        "and its destruction.");
  CHECK(problem_of([&] { client.pull(9, std::span{to}); }) == Problem::unknown_shard);
  CHECK(problem_of([&] { client.ensure_slots(9, 0, {0}); }) == Problem::unknown_shard);
  CHECK(problem_of([&] { static_cast<void>(client.staleness({1, 9})); }) == Problem::unknown_shard);
  CHECK(message([&] { client.push(1, dist::sum, given(five)); }) ==
        "Shard 'w' (number 1) does not fit the values of a push (it takes 1 times 24 bytes, and 20 were given). Give "
        "one value for each element, one for all, or one row for each index.");
  CHECK(message([&] { client.push(1, dist::sum, given(doubles)); }) ==
        "Shard 'w' (number 1) has elements of another type (they are f32, the given elements are f64). Use the "
        "variable's element type.");
  std::vector<std::int64_t> wrong(6);
  CHECK(problem_of([&] { client.pull(1, std::span{wrong}); }) == Problem::wrong_type);
  std::vector<float> short_memory(4);
  CHECK(message([&] { client.pull(1, std::span{short_memory}); }) ==
        "A pull of shard 1 does not fit its memory (its elements are 24 bytes, the memory has 16). Give memory of the "
        "size of the shard.");
  for (const std::int64_t row : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    const std::vector<std::int64_t> rows{0, row};
    const std::vector<float> values(4);
    CHECK(message([&] {
            client.push(PushRequest{}.rows(1, dist::sum, rows, given(values), DuplicateRows::in_order));
          }) == dist::concat("Shard 'w' (number 1) has no row ", row,
                             " (it has 3). Give indices from 0 to the number of rows - 1."));
    CHECK(problem_of([&] { client.pull(PullRequest{}.rows(1, rows, std::span{short_memory})); }) == Problem::wrong_row);
  }
  const std::vector<std::int64_t> one{0};
  CHECK(problem_of([&] { client.push(PushRequest{}.rows(1, dist::sum, one, given(six), DuplicateRows::summed)); }) ==
        Problem::wrong_size);
  CHECK_THROWS_AS(client.push(PushRequest{}.rows(1, dist::sum, wrong, given(five), DuplicateRows::summed)),
                  dist::ShapeMismatch);
  CHECK(message([&] { client.push(1, dist::nn::Adam::Update<float, false>{}, given(six)); }) ==
        "Shard 'w' (number 1) lacks slots for an update (it has 0, and the update uses 2 from number 0 on). Create the "
        "optimizer's slots before it is applied.");
  CHECK(problem_of([&] { client.pull(1, std::span{to}, {.array = 1}); }) == Problem::wrong_slot);
  CHECK(problem_of([&] { client.ensure_slots(1, 1, {0}); }) == Problem::wrong_slot);
  CHECK(message([&] {
          client.create({1, "v", 1, 1}, 1.0f);
        }) ==
        "Shard 'v' (number 1) cannot be created (the server already has a shard with this number). Drop that shard "
        "first, or take it over.");
  CHECK(problem_of([&] { client.create({2, "v", 2, 2}, given(five)); }) == Problem::wrong_size);
  client.create({3, "n", 2, 1}, 6);
  CHECK(problem_of([&] {
          client.push(3, dist::detail::Divide{}, given(std::vector<int>{2, 0}));
        }) == Problem::wrong_value);
  CHECK(problem_of([&] { client.push(1, dist::sum, given(six), {.version = 1}); }) == Problem::malformed);
  // A request with one error changes nothing.
  CHECK(problem_of([&] {
          client.push(PushRequest{}.dense(1, dist::sum, given(six)).dense(3, dist::sum, given(six)));
        }) == Problem::wrong_type);
  CHECK(pulled<float>(client, 1, 6) == std::vector<float>(6, 1));
  CHECK(pulled<int>(client, 3, 2) == std::vector<int>{6, 6});
  CHECK(client.list()[0].version == 0);
}

template <class Kit>
void staleness_is_counted() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  client.create({1, "w", 2, 1}, 0.0f);
  client.create({2, "v", 2, 1}, 0.0f);
  const std::vector<float> ones(2, 1);
  std::vector<float> w(2);
  const std::uint64_t version = client.pull(1, std::span{w});
  CHECK(version == 0);
  CHECK(client.push(1, dist::sum, given(ones), {.version = version}) == Pushed{1, 0});
  CHECK(client.push(1, dist::sum, given(ones), {.version = version}) == Pushed{2, 1});
  CHECK(client.push(1, dist::sum, given(ones)) == Pushed{3, 0});
  CHECK(client.push(1, dist::sum, given(ones), {.version = 0}) == Pushed{4, 3});
  const std::vector<server::Staleness> all = client.staleness({1, 2});
  REQUIRE(all.size() == 2);
  CHECK(all[0] == server::Staleness{3, 4, 3});
  CHECK(all[0].mean() == doctest::Approx(4.0 / 3));
  CHECK(all[1] == server::Staleness{});
}

/// A shard refuses contributions from versions that are too old, and others accept their parts.
template <class Kit>
void staleness_is_bounded() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  client.create({1, "w", 2, 1}, 0.0f);
  client.create({2, "v", 2, 1}, 0.0f);
  const auto push = [&](std::uint64_t w, std::uint64_t v, std::uint64_t most) {
    return client.push(PushRequest{}
                           .uniform(1, dist::sum, 1.0f, {.version = w, .max_staleness = most})
                           .uniform(2, dist::sum, 1.0f, {.version = v, .max_staleness = most}));
  };
  const std::vector<std::int64_t> row{1};
  const std::array<float, 1> one{1};
  for (int i = 0; i < 3; ++i)
    client.push(PushRequest{}.rows(1, dist::sum, row, std::span{one}, DuplicateRows::in_order));
  CHECK(push(1, 0, 2) == std::vector<Pushed>{{4, 2, true}, {1, 0, true}});
  CHECK(push(1, 0, 2) == std::vector<Pushed>{{4, 3, false}, {2, 1, true}});
  CHECK(push(4, 0, 0) == std::vector<Pushed>{{5, 0, true}, {2, 2, false}});
  CHECK(push(0, 0, server::any_staleness) == std::vector<Pushed>{{6, 5, true}, {3, 2, true}});
  CHECK(pulled<float>(client, 1, 2) == std::vector<float>{3, 6});
  CHECK(pulled<float>(client, 2, 2) == std::vector<float>{3, 3});
  const std::vector<server::Staleness> all = client.staleness({1, 2});
  CHECK(all[0] == server::Staleness{3, 7, 5, 1});
  CHECK(all[1] == server::Staleness{3, 3, 2, 1});
  CHECK(what_throws<dist::InvalidArgument>(
            [&] { client.push(1, dist::sum, given(std::vector<float>(2)), {.max_staleness = 3}); }) ==
        "A push to shard 1 cannot have a staleness bound (the version that its values come from is unknown). Give the "
        "version that was pulled, or no bound.");
}

/// Clients with a staleness bound of two pushes, which recompute if refused: no push is lost, and none is more stale.
template <class Kit>
void bounded_clients_at_the_same_time() {
  ServerPair<Kit> pair;
  constexpr int steps = 40;
  constexpr std::uint64_t most = 2;
  pair.client.create({1, "w", 3, 1}, 0.0f);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.emplace_back([&] {
      typename ServerPair<Kit>::Client client{3, pair.endpoint, ServerPair<Kit>::options()};
      std::array<float, 3> w{};
      for (int step = 0; step < steps;) {
        const std::uint64_t version = client.pull(1, std::span{w});
        const Pushed pushed =
            client.push(PushRequest{}.uniform(1, dist::sum, 1.0f, {.version = version, .max_staleness = most})).front();
        if (pushed.applied != (pushed.staleness <= most)) ++wrong;
        if (pushed.applied) ++step;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pulled<float>(pair.client, 1, 3) == std::vector<float>(3, 3 * steps));
  const server::Staleness staleness = pair.client.staleness({1}).front();
  CHECK(staleness.pushes == 3 * steps);
  CHECK(staleness.max <= most);
}

template <class Kit>
void outstanding_calls() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  client.create({1, "w", 4, 1}, 0.0f);
  const std::vector<float> ones(4, 1);
  using Transport = typename Kit::Transport;
  {
    std::deque<server::PendingMessage<Transport, PushRequest>> messages;
    for (int i = 0; i < 64; ++i) messages.emplace_back(client).request().dense(1, dist::sum, given(ones));
    for (auto& message : messages) message.send();
    for (auto& message : messages) message.wait();
    for (auto& message : messages) CHECK(message.is_done());
  }
  CHECK(pulled<float>(client, 1, 4) == std::vector<float>(4, 64));
  std::vector<float> to(4);
  const auto started = [&] {
    auto message = std::make_shared<server::PendingMessage<Transport, PullRequest>>(client);
    message->request().dense(1, std::span{to});
    typename server::PendingMessage<Transport, PullRequest>::Part part{message};
    message->send();
    return part;
  };
  {
    const auto given_up = started();  // destroyed before any wait
  }
  auto part = started();
  auto moved = std::move(part);
  moved.wait();
  CHECK(moved.result() == 64);
  CHECK(to[3] == 64.0f);
}

/// Many clients push to the same shards while others read them: no push is lost, and snapshots are consistent.
template <class Kit>
void clients_at_the_same_time() {
  ServerPair<Kit> pair;
  constexpr std::size_t count = 5000;
  constexpr int steps = 50;
  pair.client.create({1, "w", count, 1}, 0.0f);
  pair.client.create({2, "v", count, 1}, 0.0f);
  pair.client.ensure_slots(2, 0, {0});
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.emplace_back([&] {
      typename ServerPair<Kit>::Client client{3, pair.endpoint, ServerPair<Kit>::options()};
      const std::vector<float> ones(count, 1);
      std::vector<float> w(count), v(count);
      for (int step = 0; step < steps; ++step) {
        const auto versions = client.pull(PullRequest{}.dense(1, std::span{w}).dense(2, std::span{v}));
        for (std::size_t i = 0; i < count; ++i)
          if (w[i] != static_cast<float>(versions[0]) || v[i] != -static_cast<float>(versions[1])) ++torn;
        client.push(PushRequest{}
                        .dense(1, dist::sum, given(ones), {.version = versions[0]})
                        .dense(2, dist::nn::SGD::Momentum<float, false>{1, 0}, given(ones), {.version = versions[1]}));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(torn == 0);
  CHECK(pulled<float>(pair.client, 1, count) == std::vector<float>(count, 3 * steps));
  CHECK(pair.client.list()[1].version == 3 * steps);
  CHECK(pair.client.staleness({1})[0].pushes == 3 * steps);
}

// spec L15: the data of a lost server is lost, which is reported instead of reading zeros.
template <class Kit>
void servers_that_are_lost() {
  ServerPair<Kit> pair;
  auto& client = pair.client;
  client.create({1, "w", 2, 1}, 1.0f);
  const std::vector<float> ones(2, 1);
  std::vector<float> to(2);
  // if the client can access the server's memory, it now has the shard's address
  client.push(1, dist::sum, given(ones));
  pair.peer->kill();
  // Until the client detects the exit of the server, it may push to memory that the server has left.
  const std::string gone = what_throws<dist::Unavailable>([&] {
    support::soon([&] {
      client.push(1, dist::sum, given(ones));
      return false;
    });
  });
  CHECK(gone.starts_with("Parameter server 3 at " + to_string(pair.endpoint) + " is unavailable ("));
  CHECK(gone.ends_with(", 3 times). Restart the job from its last checkpoint."));
  // Failed attempts do not prevent a later one from succeeding.
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(client.pull(1, std::span{to}), dist::ServerUnavailable);

  pair.peer.reset();
  pair.peer.emplace(pair.endpoint);
  typename ServerPair<Kit>::Client newcomer{3, pair.endpoint, ServerPair<Kit>::options()};
  newcomer.create({1, "w", 2, 1}, 0.0f);
  const std::string restarted =
      "Parameter server 3 at " + to_string(pair.endpoint) +
      " has lost its variables: restore a checkpoint (it was started again since they were created). "
      "Create the variables again and restore the last checkpoint.";
  CHECK(what_throws<dist::ServerUnavailable>([&] { client.pull(1, std::span{to}); }) == restarted);
  CHECK(what_throws<dist::ServerUnavailable>([&] { client.push(1, dist::sum, given(ones)); }) == restarted);
  CHECK(what_throws<dist::ServerUnavailable>([&] { client.greet(); }) == restarted);
  CHECK(to == std::vector<float>(2, 0.0f));
  CHECK(pulled<float>(newcomer, 1, 2) == std::vector<float>(2, 0));
  // A client with a given incarnation rejects any other server.
  server::ClientOptions options = ServerPair<Kit>::options();
  options.incarnation = client.incarnation();
  typename ServerPair<Kit>::Client told{3, pair.endpoint, options};
  CHECK(what_throws<dist::ServerUnavailable>([&] { told.pull(1, std::span{to}); }) == restarted);
}

TEST_CASE_TEMPLATE_DEFINE("a parameter server serves its clients", Kit, server_clients) {
  SUBCASE("shards are created with values, elements or functions, listed and dropped") {
    shards_are_created_and_pulled<Kit>();
  }
  SUBCASE("several shards are pushed to and pulled from in one message, dense or by rows") { pushes_and_pulls<Kit>(); }
  SUBCASE("unchanged shards are not sent") { pulls_of_what_changed<Kit>(); }
  SUBCASE("one value is pushed to all elements") { uniform_pushes<Kit>(); }
  SUBCASE("messages of several shards may exceed what a transport sends at once") { large_messages<Kit>(); }
  SUBCASE("optimizers run on the server, with slots") { optimizers_have_slots<Kit>(); }
  SUBCASE("errors have a type, name the shard, and change nothing") { mistakes<Kit>(); }
  SUBCASE("versions and staleness are counted for each shard") { staleness_is_counted<Kit>(); }
  SUBCASE("a push that is too stale is refused and counted") { staleness_is_bounded<Kit>(); }
  SUBCASE("the staleness bound holds for concurrent pushes") { bounded_clients_at_the_same_time<Kit>(); }
  SUBCASE("calls are concurrent, and end when they are abandoned") { outstanding_calls<Kit>(); }
  SUBCASE("concurrent pushes of clients leave snapshots consistent") { clients_at_the_same_time<Kit>(); }
  SUBCASE("a lost or restarted server is unavailable") { servers_that_are_lost<Kit>(); }
}

}  // namespace conformance
