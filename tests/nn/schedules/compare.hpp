// Compares a learning rate schedule with Keras.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include "nn/keras/schedules.hpp"

template <class Schedule>
void compare(const Schedule& schedule, const keras_schedules::Rates& keras) {
  CHECK_NOTHROW(schedule.check());
  for (std::size_t step = 0; step < keras.size(); ++step)
    CHECK(std::fabs(schedule(static_cast<std::int64_t>(step)) - keras[step]) < 1e-15);
}
