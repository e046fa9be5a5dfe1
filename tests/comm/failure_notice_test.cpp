#include <dist/comm/failure_notice.hpp>

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace {

/// What those are told to whom the bytes of the notice come.
template <class E>
std::string raised(const dist::FailureNotice& notice) {
  dist::FailureNotice received;
  std::memcpy(static_cast<void*>(&received), &notice, sizeof notice);
  try {
    received.raise(2, "b");
  } catch (const E& error) {
    return error.what();
  }
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("an error keeps its type and its text in another process") {
  const dist::DeadlineExceeded late("Worker 1 did not come", "it slept", "Wake it");
  CHECK(has(raised<dist::DeadlineExceeded>(dist::FailureNotice{late}), late.what()));
  CHECK(dist::FailureNotice{late}.breaks_the_group());

  const dist::CollectiveMismatch mismatch("The workers differ", "one sums", "Sum on all");
  CHECK(has(raised<dist::CollectiveMismatch>(dist::FailureNotice{mismatch}), mismatch.what()));
  CHECK_FALSE(dist::FailureNotice{mismatch}.breaks_the_group());

  const dist::Unavailable lost(5, "c", "its process 12 ended", "Start again");
  CHECK(has(raised<dist::Unavailable>(dist::FailureNotice{lost}), "Worker 5 on host c is gone"));
  CHECK(dist::FailureNotice{lost}.breaks_the_group());

  const std::runtime_error own("the label is 11");
  const std::string text = raised<dist::PeerError>(dist::FailureNotice{own});
  CHECK(has(text, "Worker 2 on host b failed"));
  CHECK(has(text, "the label is 11"));
}

TEST_CASE("a text alone is somebody's failure; long ones are cut") {
  CHECK(has(raised<dist::PeerError>("no disk"), "no disk"));
  const std::string text = raised<dist::PeerError>(std::string_view{std::string(5000, 'x')});
  CHECK(has(text, std::string(1000, 'x').c_str()));
  CHECK(text.size() < 1300);
}

}  // namespace
