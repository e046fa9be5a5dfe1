/// The durations and clocks of std::chrono without what <chrono> brings besides in C++20: calendars, and with them
/// streams and locales, which take the compiler a twentieth of what all of <dist/dist.hpp> takes.
#pragma once

#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // libstdc++'s part of it that <mutex> includes, since GCC 12
#else
#include <chrono>
#endif
