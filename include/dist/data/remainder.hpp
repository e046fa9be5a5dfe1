#pragma once

namespace dist::data {

/// What becomes of elements that do not fill the last batch.
enum class Remainder : bool { keep, drop };

}  // namespace dist::data
