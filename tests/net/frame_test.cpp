#include <dist/net/frame.hpp>

#include <doctest/doctest.h>

#include <cstring>

using dist::net::append_frame;
using dist::net::Frame;
using dist::net::frame_header_size;
using dist::net::FrameError;
using dist::net::parse_frame;

namespace {

std::vector<std::byte> frame_of(std::uint16_t type, std::string_view payload) {
  std::vector<std::byte> bytes;
  append_frame(bytes, type, std::as_bytes(std::span{payload}));
  return bytes;
}

}  // namespace

TEST_CASE("a frame is parsed, with its size") {
  std::vector<std::byte> bytes = frame_of(7, "hello");
  append_frame(bytes, 8, {});
  std::size_t used = 0;
  const std::optional<Frame> first = parse_frame(bytes, 100, used);
  REQUIRE(first);
  CHECK(first->type == 7);
  CHECK(first->payload.size() == 5);
  CHECK(used == frame_header_size + 5);
  const std::optional<Frame> second = parse_frame(std::span{bytes}.subspan(used), 100, used);
  REQUIRE(second);
  CHECK(second->type == 8);
  CHECK(second->payload.empty());
}

TEST_CASE("an incomplete frame is not returned") {
  const std::vector<std::byte> bytes = frame_of(7, "hello");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::size_t used = 1;
    CHECK_FALSE(parse_frame(std::span{bytes}.first(size), 100, used));
    CHECK(used == 0);
  }
}

TEST_CASE("every flipped bit is detected") {
  const std::vector<std::byte> whole = frame_of(7, "hello");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    CAPTURE(bit);
    std::vector<std::byte> bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    std::size_t used = 0;
    // A greater length leaves the frame incomplete, up to the limit; all other errors are detected at once.
    bool accepted = false;
    try {
      accepted = parse_frame(bytes, 5 + 64, used).has_value();
    } catch (const FrameError&) {
    }
    CHECK_FALSE(accepted);
  }
}

TEST_CASE("a length of 4 GiB is refused when the header has arrived") {
  std::vector<std::byte> bytes = frame_of(7, "hello");
  std::memset(bytes.data() + 8, 0xFF, 4);
  bytes.resize(frame_header_size);
  std::size_t used = 0;
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_frame(bytes, 4096, used)),
                       "A peer announces a frame that is too long (4294967295 bytes, the limit is 4096). Check that no "
                       "other program uses the ports of the job.",
                       FrameError);
}

TEST_CASE("another protocol is refused by its first bytes, another version by its number") {
  const std::string_view http = "GET / HTTP/1.1\r\n";
  std::size_t used = 0;
  CHECK_THROWS_AS(static_cast<void>(parse_frame(std::as_bytes(std::span{http}).first(4), 100, used)), FrameError);
  std::vector<std::byte> bytes = frame_of(7, "hello");
  bytes[4] = std::byte{2};
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_frame(bytes, 100, used)),
                       "A peer has another version of this library (its protocol is number 2, ours 1). Build all "
                       "processes of the job from one version.",
                       FrameError);
}
