#include <dist/net/connection.hpp>

#include <doctest/doctest.h>

#include <utility>

using dist::io::Descriptor;
using dist::net::Connection;
using dist::net::Frame;
using dist::net::FrameError;

namespace {

std::pair<Descriptor, Descriptor> sockets() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  return {Descriptor{ends[0]}, Descriptor{ends[1]}};
}

std::vector<std::byte> bytes_of(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31);
  return bytes;
}

}  // namespace

TEST_CASE("frames are parsed from single bytes") {
  auto [here, there] = sockets();
  Connection reader{std::move(there), 100};
  std::vector<std::byte> bytes;
  dist::net::append_frame(bytes, 9, bytes_of(20));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    CHECK_FALSE(reader.next());
    REQUIRE(send(here.get(), &bytes[i], 1, 0) == 1);
    CHECK(reader.receive());
  }
  const auto frame = reader.next();
  REQUIRE(frame);
  CHECK(frame->payload == bytes_of(20));
  CHECK(reader.received_all());
}

TEST_CASE("both sides send more than the system buffers, without waiting for each other") {
  auto [here, there] = sockets();
  constexpr std::size_t size = 3'000'000;
  Connection left{std::move(here), size}, right{std::move(there), size};
  left.send(1, bytes_of(size));
  right.send(2, bytes_of(size));
  CHECK_FALSE(left.sent());
  CHECK((left.poll_entry().events & POLLOUT) != 0);
  std::optional<Frame> at_left, at_right;
  for (int i = 0; i < 100'000 && (!at_left || !at_right); ++i)
    for (auto [connection, frame] : {std::pair{&left, &at_left}, std::pair{&right, &at_right}}) {
      connection->flush();
      CHECK(connection->receive());
      if (!*frame) *frame = connection->next();
    }
  REQUIRE((at_left && at_right));
  CHECK(at_left->payload == bytes_of(size));
  CHECK(at_right->type == 1);
  CHECK(left.sent());
  CHECK((left.poll_entry().events & POLLOUT) == 0);
}

TEST_CASE("a peer that closes within a frame is reported") {
  auto [here, there] = sockets();
  Connection reader{std::move(there), 100};
  std::vector<std::byte> bytes;
  dist::net::append_frame(bytes, 9, bytes_of(20));
  REQUIRE(send(here.get(), bytes.data(), 25, 0) == 25);
  here.reset();
  CHECK(reader.receive());
  CHECK_FALSE(reader.next());
  CHECK_FALSE(reader.receive());
}

TEST_CASE("sending to a closed peer raises no signal, and its last data is received") {
  auto [here, there] = sockets();
  Connection writer{std::move(here), 100};
  {
    Connection peer{std::move(there), 100};
    peer.send(5, {});
  }
  writer.send(1, bytes_of(10));
  CHECK(writer.failed());
  CHECK(writer.sent());
  writer.send(1, bytes_of(10));
  CHECK(writer.receive());
  const auto last = writer.next();
  REQUIRE(last);
  CHECK(last->type == 5);
  CHECK_FALSE(writer.receive());
}

TEST_CASE("a frame that is too long is refused, unless the limit is raised") {
  auto [here, there] = sockets();
  Connection writer{std::move(here), 100}, reader{std::move(there), 100};
  writer.send(1, bytes_of(101));
  CHECK(reader.receive());
  CHECK_THROWS_AS(static_cast<void>(reader.next()), FrameError);
  reader.allow(101);
  CHECK(reader.next());
}
