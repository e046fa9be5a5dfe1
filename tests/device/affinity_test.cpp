#include <dist/device/affinity.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

TEST_CASE("the allowed processors are those of the process, in ascending order, on every thread") {
  const std::vector<std::size_t> processors = dist::allowed_processors();
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  CHECK(processors.size() == static_cast<std::size_t>(CPU_COUNT(&set)));
  CHECK(std::is_sorted(processors.begin(), processors.end()));
  for (const std::size_t processor : processors) CHECK(CPU_ISSET(processor, &set));
  std::vector<std::size_t> seen;
  std::thread([&] {
    dist::pin_this_thread(processors.back());
    seen = dist::allowed_processors();
  }).join();
  CHECK(seen == processors);
}

TEST_CASE("a mask has room for any number of processors") {
  for (const std::size_t processor : {std::size_t{0}, std::size_t{63}, std::size_t{64}, std::size_t{5000}}) {
    dist::detail::ProcessorMask mask{processor};
    REQUIRE(mask.capacity() > processor);
    CHECK(mask.bytes() * 8 == mask.capacity());
    CHECK(!mask.has(processor));
    mask.set(processor);
    for (std::size_t other = 0; other < mask.capacity(); ++other) CHECK(mask.has(other) == (other == processor));
  }
}

TEST_CASE("a pinned thread may run on its processor only, others are not touched") {
  const std::vector<std::size_t> before = dist::allowed_processors();
  for (const std::size_t processor : before) {
    std::vector<std::size_t> inside;
    std::size_t running_on = 0;
    std::thread([&] {
      dist::pin_this_thread(processor);
      inside = dist::detail::processors_of_thread(0);
      running_on = static_cast<std::size_t>(sched_getcpu());
    }).join();
    CHECK(inside == std::vector<std::size_t>{processor});
    CHECK(running_on == processor);
  }
  CHECK(dist::allowed_processors() == before);
}

TEST_CASE("a binding gives the thread its processors back at its end, unless the thread was bound again") {
  const std::vector<std::size_t> before = dist::allowed_processors();
  std::vector<std::size_t> inside;
  std::vector<std::size_t> afterwards;
  std::vector<std::size_t> of_another;
  std::thread([&] {
    {
      const dist::ThreadBinding binding{{&before.front(), 1}};
      inside = dist::detail::processors_of_thread(0);
    }
    afterwards = dist::detail::processors_of_thread(0);
    {
      const dist::ThreadBinding binding{before};
      dist::pin_this_thread(before.back());
    }
    of_another = dist::detail::processors_of_thread(0);
  }).join();
  CHECK(inside == std::vector<std::size_t>{before.front()});
  CHECK(afterwards == before);
  CHECK(of_another == std::vector<std::size_t>{before.back()});
}

TEST_CASE("a processor that does not exist is a refusal, not an error") {
  const std::vector<std::size_t> before = dist::allowed_processors();
  std::vector<std::size_t> inside;
  std::thread([&] {
    dist::pin_this_thread(std::size_t{1} << 20);
    inside = dist::detail::processors_of_thread(0);
  }).join();
  CHECK(inside == before);
}

TEST_CASE("a thread is moved without being bound, unless it may not run there") {
  const std::vector<std::size_t> all = dist::allowed_processors();
  for (const std::size_t processor : all) {
    std::vector<std::size_t> afterwards;
    bool arrived = false;
    std::thread([&] {
      // The system may move the thread on at any time, but not every time.
      for (int attempt = 0; attempt < 1000 && !arrived; ++attempt) {
        dist::move_this_thread(processor);
        arrived = static_cast<std::size_t>(sched_getcpu()) == processor;
      }
      afterwards = dist::detail::processors_of_thread(0);
    }).join();
    CHECK(arrived);
    CHECK(afterwards == all);
  }
  for (const std::size_t refused : {std::size_t{8191}, std::size_t{8192}, std::size_t{1} << 40, all.front()}) {
    std::vector<std::size_t> afterwards;
    std::thread([&] {
      dist::pin_this_thread(all.back());
      dist::move_this_thread(refused);
      afterwards = dist::detail::processors_of_thread(0);
    }).join();
    CHECK(afterwards == std::vector<std::size_t>{all.back()});
  }
}
