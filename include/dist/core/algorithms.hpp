/// The iterator algorithms of `<algorithm>` and `<numeric>`. Leaves out the range and parallel algorithms, which are a
/// thirtieth of the compile time of `<dist/dist.hpp>`.
#pragma once

#if __has_include(<bits/stl_algo.h>) && __has_include(<bits/stl_numeric.h>)
#include <bits/stl_algobase.h>  // the parts of libstdc++, in the order of `<algorithm>`

#include <bits/stl_algo.h>
#include <bits/stl_numeric.h>
#else
#include <algorithm>
#include <numeric>
#endif
