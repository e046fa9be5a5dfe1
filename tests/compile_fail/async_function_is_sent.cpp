// expect: an optimizer, a schedule, a loss or a metric is sent to the workers, which compute with it
#include <dist/async/sent_function.hpp>

struct Schedule {
#ifndef CONTROL
  const float* rates = nullptr;
#else
  float rate = 0;
#endif
};

int main() { [[maybe_unused]] const dist::nn::SentFunction<Schedule> sent{}; }
