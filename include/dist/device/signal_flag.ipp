#pragma once

#include <dist/device/signal_flag.hpp>

namespace dist::detail {

DIST_INLINE SignalFlag::SignalFlag(int signal) : signal_(signal) {
  if (exists.exchange(true))
    throw InvalidArgument("A second PreemptionHandler was created", "the first one still waits for its signal",
                          "Use one for the whole program");
  is_set.store(false);
  status.store(0);
  struct sigaction handle {};
  handle.sa_handler = [](int) { is_set.store(true, std::memory_order_relaxed); };
  handle.sa_flags = SA_RESTART;
  sigemptyset(&handle.sa_mask);
  if (sigaction(signal_, &handle, &before_) != 0) {
    exists.store(false);
    throw InvalidArgument(concat("Signal ", signal, " cannot be handled"), std::strerror(errno),
                          "Give a signal that a program may handle, such as SIGTERM");
  }
}

DIST_INLINE SignalFlag::~SignalFlag() {
  sigaction(signal_, &before_, nullptr);
  exists.store(false);
}

DIST_INLINE void SignalFlag::make_if_free(std::optional<SignalFlag>& flag, int signal) {
  struct sigaction now {};
  if (signal <= 0 || sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
      now.sa_handler != SIG_DFL)
    return;
  try {
    flag.emplace(signal);
  } catch (const InvalidArgument&) {  // another flag was created meanwhile
  }
}

}  // namespace dist::detail
