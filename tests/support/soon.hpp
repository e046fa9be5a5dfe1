#pragma once

#include <chrono>
#include <thread>

namespace support {

/// Whether it holds within ten seconds.
template <class Fn>
bool soon(Fn&& holds) {
  for (int i = 0; i < 2000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  return holds();
}

}  // namespace support
