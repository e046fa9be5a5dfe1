#include <dist/rpc/rpc_session.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

namespace rpc = dist::rpc;
namespace net = dist::net;

net::Frame frame_of(const std::vector<std::byte>& bytes) {
  std::size_t used = 0;
  std::optional<net::Frame> frame = net::parse_frame(bytes, rpc::longest_head, used);
  REQUIRE(frame);
  CHECK(used == bytes.size());
  return *frame;
}
rpc::RequestHead sent(const rpc::RequestHead& head) { return rpc::RequestHead::from(frame_of(head.frame())); }

/// Returns the server's answer to a call, "taken" if it accepts the call.
std::string said(rpc::ServerSession& server, const rpc::RequestHead& head, std::string_view method = "push") {
  const std::optional<rpc::ReplyHead> refusal = server.refusal(sent(head), method);
  if (!refusal) return "taken";
  CHECK(refusal->incarnation == server.incarnation());
  return refusal->greet_again ? "greet again" : refusal->failure->why;
}
void greet(rpc::ClientSession& client, rpc::ServerSession& server) {
  CHECK_FALSE(client.greeted(server.answer(sent(client.greeting()))));
}

}  // namespace

TEST_CASE("heads arrive as they were sent, and other bytes are rejected") {
  rpc::RequestHead request{7, {}, {}, 9, std::vector<std::byte>(32)};
  request.of_server[0] = std::byte{1};
  request.of_client[31] = std::byte{2};
  const rpc::RequestHead read = sent(request);
  CHECK(read.size == 7);
  CHECK(read.of_server == request.of_server);
  CHECK(read.of_client == request.of_client);
  CHECK(read.number == 9);
  CHECK(read.proof == request.proof);

  const rpc::ReplyHead reply{5, 6, rpc::Outcome{rpc::Failure::handler, std::string(10'000, 'x'), "T"}, true};
  CHECK(reply.frame().size() <= rpc::longest_head);
  const rpc::ReplyHead back = rpc::ReplyHead::from(frame_of(reply.frame()));
  CHECK(back.size == 5);
  CHECK(back.incarnation == 6);
  CHECK(back.greet_again);
  CHECK(back.failure->failure == rpc::Failure::handler);
  CHECK(back.failure->why == std::string(4096, 'x'));
  CHECK(back.failure->thrown == "T");
  CHECK_FALSE(rpc::ReplyHead::from(frame_of(rpc::ReplyHead{1, 2}.frame())).failure);

  CHECK_THROWS_AS(rpc::RequestHead::from(frame_of(reply.frame())), net::FrameError);
  CHECK_THROWS_AS(rpc::ReplyHead::from(frame_of(request.frame())), net::FrameError);
  for (net::Frame frame : {frame_of(request.frame()), frame_of(reply.frame())}) {
    for (std::size_t length = 0; length < frame.payload.size(); ++length) {
      net::Frame cut = frame;
      cut.payload.resize(length);
      if (frame.type == rpc::request_frame)
        CHECK_THROWS_AS(rpc::RequestHead::from(cut), net::FrameError);
      else
        CHECK_THROWS_AS(rpc::ReplyHead::from(cut), net::FrameError);
    }
  }
  net::Frame unknown = frame_of(rpc::ReplyHead{1, 2}.frame());
  unknown.payload[17] = std::byte{7};
  CHECK_THROWS_AS(rpc::ReplyHead::from(unknown), net::FrameError);
}

TEST_CASE("calls are accepted once, from callers with the secret, with the proven content") {
  rpc::ServerSession server{"secret"};
  rpc::ClientSession client{"secret"};
  CHECK(client.must_greet());
  greet(client, server);
  CHECK_FALSE(client.must_greet());
  const rpc::RequestHead first = client.head("push", 10), second = client.head("push", 10);
  CHECK(said(server, second) == "taken");
  CHECK(said(server, first) == "taken");
  CHECK(said(server, first) == "the server has already received this call");
  CHECK(said(server, client.head("push", 10), "pull") == "the caller does not have the secret of the job");
  for (auto change : {+[](rpc::RequestHead& head) { ++head.size; }, +[](rpc::RequestHead& head) { ++head.number; },
                      +[](rpc::RequestHead& head) { head.proof[3] ^= std::byte{1}; },
                      +[](rpc::RequestHead& head) { head.of_client[3] ^= std::byte{1}; },
                      +[](rpc::RequestHead& head) { head.of_server[3] ^= std::byte{1}; }}) {
    rpc::RequestHead head = client.head("push", 10);
    change(head);
    CHECK(said(server, head) == "the caller does not have the secret of the job");
  }
  rpc::ClientSession without{""};
  CHECK_FALSE(without.must_greet());
  CHECK(said(server, without.head("push", 10)) == "the caller has no secret, but this job has one");
}

TEST_CASE("a client accepts a server with the secret, and greets another one again") {
  rpc::ServerSession wrong{"another"}, open{""}, server{"secret"}, successor{"secret"};
  CHECK(server.incarnation() != successor.incarnation());
  rpc::ClientSession client{"secret"};
  CHECK(client.greeted(wrong.answer(client.greeting()))->why == "the server does not have the secret of the job");
  CHECK(client.greeted(open.answer(client.greeting()))->why == "the server was started without the secret of the job");
  CHECK_THROWS_AS(client.greeted(rpc::Chunk{net::random_nonce()}), net::FrameError);
  CHECK(client.must_greet());
  greet(client, server);
  const rpc::RequestHead head = client.head("push", 1);
  CHECK(said(successor, head) == "greet again");
  client.forget(net::Nonce{});
  CHECK_FALSE(client.must_greet());
  client.forget(head.of_server);
  CHECK(client.must_greet());
  greet(client, successor);
  CHECK(said(successor, client.head("push", 1)) == "taken");

  rpc::ClientSession caller{""};
  CHECK(said(open, caller.head("push", 1)) == "taken");
}

TEST_CASE("a server with too many clients changes its nonce, and then rejects old calls") {
  rpc::ServerSession server{"secret", 2};
  rpc::ClientSession a{"secret"}, b{"secret"}, c{"secret"};
  greet(a, server);
  greet(b, server);
  greet(c, server);
  const rpc::RequestHead old = a.head("push", 1);
  CHECK(said(server, old) == "taken");
  CHECK(said(server, b.head("push", 1)) == "taken");
  CHECK(said(server, c.head("push", 1)) == "greet again");
  CHECK(said(server, old) == "greet again");
  greet(c, server);
  CHECK(said(server, c.head("push", 1)) == "taken");
  CHECK(said(server, old) == "greet again");
}
