/// std::thread and std::this_thread without std::jthread, whose stop tokens bring semaphores. Whoever prints a
/// std::thread::id includes <thread>.
#pragma once

#if __has_include(<bits/std_thread.h>) && __has_include(<bits/this_thread_sleep.h>)
#include <bits/std_thread.h>  // libstdc++'s parts of <thread> that <future> includes, since GCC 11
#include <bits/this_thread_sleep.h>
#else
#include <thread>
#endif
