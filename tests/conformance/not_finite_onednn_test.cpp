#include <dist/nn/onednn/backend.hpp>

#include "conformance/not_finite.hpp"

TEST_CASE("numbers that are not finite come out of networks by oneDNN as by plain loops") {
  conformance::check_not_finite<dist::nn::OneDnn>();
}
