#include <dist/nn/onednn/backend.hpp>

#include "conformance/not_finite.hpp"

TEST_CASE("networks with oneDNN propagate non-finite numbers like plain loops") {
  conformance::check_not_finite<dist::nn::OneDnn>();
}
