/// std::unique_ptr and std::shared_ptr without what <memory> brings besides: pointers that are changed atomically,
/// memory without objects, and the policies of parallel algorithms.
#pragma once

#if __has_include(<bits/shared_ptr.h>)
#include <bits/shared_ptr.h>  // libstdc++'s parts of it that <future> includes
#include <bits/unique_ptr.h>
#else
#include <memory>
#endif
