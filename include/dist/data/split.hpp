#pragma once

namespace dist::data {

/// Which part of a dataset.
enum class Split : bool { train, test };

}  // namespace dist::data
