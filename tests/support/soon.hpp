#pragma once

#include <chrono>
#include <thread>

namespace support {

/// True if the condition holds within half a minute.
template <class Fn>
bool soon(Fn&& holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  return holds();
}

}  // namespace support
