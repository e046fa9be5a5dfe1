#include <dist/rpc/grpc/api.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "rpc/grpc/queue_events.hpp"
#include "support/grpc_suppressions.hpp"

namespace {

namespace rpc = dist::rpc;
using namespace dist::grpc;

rpc::Chunk bytes_of(std::string_view said) { return std::as_bytes(std::span{said}); }
std::string text_of(rpc::ChunkSpan pieces) {
  const std::vector<std::byte> bytes = rpc::joined(pieces);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::vector<std::byte> head_of(std::string_view said) { return {bytes_of(said).begin(), bytes_of(said).end()}; }

}  // namespace

TEST_CASE("a message is split into pieces of at most 16 MiB after its head, without copying") {
  const Core core;
  bool freed = false;
  Borrowed lent{[](void* flag) { *static_cast<bool*>(flag) = true; }, &freed};
  std::vector<std::byte> memory(5'000'000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 >> 3);
  std::vector<rpc::Chunk> pieces;
  for (int i = 0; i < 10; ++i) {
    pieces.emplace_back(memory);
    pieces.emplace_back();
  }
  Sender sender{head_of("head"), pieces, &lent, longest_message};
  std::vector<std::uint64_t> sizes;
  std::size_t at = 0;
  {
    std::vector<Buffer> messages;
    std::deque<Received> all;
    while (!sender.finished()) {
      messages.push_back(sender.next());
      all.emplace_back().add(messages.back().get());
      sizes.push_back(all.back().size());
      if (sizes.size() == 1) {
        CHECK(text_of({all[0].pieces().data(), 1}) == "head");
        all[0].drop_front(4);
      }
      for (const rpc::Chunk piece : all.back().pieces()) {
        REQUIRE(piece.data() == memory.data() + at);
        at = (at + piece.size()) % memory.size();
      }
    }
    CHECK(sizes == std::vector<std::uint64_t>{longest_message + 4, longest_message, 50'000'000 - 2 * longest_message});
    lent.release();
    CHECK_FALSE(freed);
  }
  CHECK(freed);
}

TEST_CASE("bytes are copied without a Borrowed, and an empty message has its head") {
  const Core core;
  std::string memory = "of a few bytes, and more than fit into a slice itself";
  const std::string before = memory;
  const rpc::Chunk piece = bytes_of(memory);
  Sender sender{head_of("head "), {&piece, 1}, nullptr, longest_message};
  Received received;
  {
    const Buffer message = sender.next();
    received.add(message.get());
  }
  CHECK(sender.finished());
  memory.assign(memory.size(), '-');
  CHECK(text_of(received.pieces()) == "head " + before);

  Sender empty{head_of("head"), {}, nullptr, longest_message};
  received.clear();
  const Buffer message = empty.next();
  CHECK(empty.finished());
  received.add(message.get());
  CHECK(text_of(received.pieces()) == "head");
}

TEST_CASE("received bytes begin after the dropped ones, however they are divided") {
  const Core core;
  Received received;
  std::string all;
  for (int i = 0; i < 40; ++i) {  // short slices store their bytes inline
    const std::string part(static_cast<std::size_t>(i), static_cast<char>('A' + i));
    grpc_slice slice = grpc_slice_from_copied_buffer(part.data(), part.size());
    const Buffer message{grpc_raw_byte_buffer_create(&slice, 1)};
    grpc_slice_unref(slice);
    received.add(message.get());
    all += part;
  }
  CHECK(received.size() == all.size());
  CHECK(text_of(received.pieces()) == all);
  const std::vector<std::byte> front = received.front(10);
  CHECK(text_of(std::vector<rpc::Chunk>{rpc::Chunk{front}}) == all.substr(0, 10));
  CHECK(received.front(5000).size() == all.size());
  received.drop_front(100);
  CHECK(received.size() == all.size() - 100);
  CHECK(text_of(received.pieces()) == all.substr(100));
}

TEST_CASE("a channel reconnects to its server within the pause of its callers") {
  const auto value = [](const std::vector<grpc_arg>& list, std::string_view key) {
    for (const grpc_arg& argument : list)
      if (argument.key == key) return argument.value.integer;
    FAIL("no such option");
    return 0;
  };
  for (const std::int64_t pause : {1, 20, 200, 3000}) {
    const std::vector<grpc_arg> list = arguments(rpc::ChannelOptions{.reconnect = std::chrono::milliseconds{pause}});
    const int longest = value(list, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS);
    CHECK(longest >= 1);
    if (pause > 1) CHECK(longest * 6 / 5 <= pause);  // plus the core's random extra
    CHECK(value(list, GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS) <= longest);
    CHECK(value(list, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS) == 30'000);
  }
}

TEST_CASE("a call without a timeout has no deadline, and a call with one has it") {
  CHECK(gpr_time_cmp(deadline_in(std::chrono::nanoseconds{0}), gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0);
  const gpr_timespec left = gpr_time_sub(deadline_in(std::chrono::milliseconds{1500}), gpr_now(GPR_CLOCK_MONOTONIC));
  CHECK(gpr_time_to_millis(left) > 1000);
  CHECK(gpr_time_to_millis(left) <= 1500);
}

TEST_CASE("bytes given away count as received, and their memory returns to the core") {
  struct Sink final : rpc::ReplySink {
    void take(rpc::Chunk piece) noexcept override { said += text_of({&piece, 1}); }
    std::string said;
  };
  const Core core;
  const std::string memory(1000, 'x');
  const rpc::Chunk piece = bytes_of(memory);
  Received received;
  Sink sink;
  for (int again = 1; again <= 2; ++again) {
    Sender sender{head_of("head "), {&piece, 1}, nullptr, longest_message};
    received.add(sender.next().get());
    received.drop_front(5);
    received.give_to(sink);
    CHECK(received.pieces().empty());
    CHECK(received.size() == static_cast<std::uint64_t>(again) * 1000);
  }
  CHECK(sink.said == std::string(2000, 'x'));
}

TEST_CASE("a poller returns events in order, whether it polls or sleeps, and none after its deadline") {
  dist_test::QueueEvents events;
  Poller poller{events.queue()};
  std::string seen;
  const auto none = [&] { return poller.next(deadline_in(std::chrono::milliseconds{5})).type == GRPC_QUEUE_TIMEOUT; };
  CHECK(none());
  for (const int after : {0, 0, 20, 0, 20, 0}) {
    events.put(std::chrono::milliseconds{after}, [&] { seen += after == 0 ? "s" : "l"; });
    const grpc_event event = poller.next(deadline_in(std::chrono::seconds{10}));
    REQUIRE(event.type == GRPC_OP_COMPLETE);
    Tag::done(event);
    CHECK(none());
  }
  CHECK(seen == "sslsls");
  events.end();
  CHECK(poller.next(deadline_in(std::chrono::seconds{10})).type == GRPC_QUEUE_SHUTDOWN);
}
