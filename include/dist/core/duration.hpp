/// Durations and clocks of std::chrono without the calendars of `<chrono>` in C++20, which are a twentieth of the
/// compile time of `<dist/dist.hpp>`.
#pragma once

#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // the part of libstdc++ that `<mutex>` includes, since GCC 12
#else
#include <chrono>
#endif
