/// The algorithms on iterators of <algorithm> and <numeric> without those on ranges and the parallel ones, which take the
/// compiler a thirtieth of what all of <dist/dist.hpp> takes.
#pragma once

#if __has_include(<bits/stl_algo.h>) && __has_include(<bits/stl_numeric.h>)
#include <bits/stl_algobase.h>  // libstdc++'s parts of them, in the order in which <algorithm> includes them

#include <bits/stl_algo.h>
#include <bits/stl_numeric.h>
#else
#include <algorithm>
#include <numeric>
#endif
