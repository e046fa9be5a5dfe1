/// std::unique_ptr and std::shared_ptr without the rest of `<memory>`: atomic pointers, uninitialised memory, and the
/// policies of parallel algorithms.
#pragma once

#if __has_include(<bits/shared_ptr.h>)
#include <bits/shared_ptr.h>  // the parts of libstdc++ that `<future>` includes
#include <bits/unique_ptr.h>
#else
#include <memory>
#endif
