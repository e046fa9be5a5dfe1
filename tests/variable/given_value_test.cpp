#include <dist/variable/given_value.hpp>

#include <cstdint>
#include <limits>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <conformance/variable_values.hpp>

using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_values, Make<dist::Default>, Make<Shared, 1>, Make<Shared, 2>, Make<Shared, 3>,
                               Make<Shared, 8>, Make<Central, 1>, Make<Central, 2>, Make<Central, 3>);

namespace {
template <class T, class V>
bool holds(V number) {
  try {
    return static_cast<V>(dist::detail::to_element<T>(number, "v")) == number;
  } catch (const dist::InvalidArgument&) {
    return false;
  }
}
}  // namespace

TEST_CASE("an integer is accepted if it is in the range of the variable's type") {
  using Long = std::numeric_limits<std::int64_t>;
  using Size = std::numeric_limits<std::uint64_t>;
  CHECK(holds<std::uint8_t>(255));
  CHECK(!holds<std::uint8_t>(256));
  CHECK(!holds<std::uint8_t>(-1));
  CHECK(holds<std::int8_t>(-128));
  CHECK(!holds<std::int8_t>(-129));
  CHECK(!holds<std::int8_t>(128U));
  CHECK(!holds<std::uint64_t>(std::int64_t{-1}));
  CHECK(!holds<std::int64_t>(Size::max()));
  CHECK(holds<std::int64_t>(static_cast<std::uint64_t>(Long::max())));
  CHECK(holds<std::uint64_t>(Long::max()));
  CHECK(!holds<std::uint64_t>(Long::min()));
  CHECK(!holds<std::int32_t>(Long::max()));
}

TEST_CASE("a floating-point type accepts any number, rounded to nearest") {
  CHECK(dist::detail::to_element<float>(1, "v") == 1.0f);
  CHECK(dist::detail::to_element<float>(16777217, "v") == 16777216.0f);
  CHECK(dist::detail::to_element<float>(0.1, "v") == 0.1f);
  CHECK(dist::detail::to_element<double>(0.1f, "v") == static_cast<double>(0.1f));
  CHECK(static_cast<float>(dist::detail::to_element<dist::BFloat16>(257, "v")) == 256.0f);
  CHECK(static_cast<float>(dist::detail::to_element<dist::Float16>(0.5, "v")) == 0.5f);
  CHECK(dist::detail::to_element<float>(dist::Float16{2}, "v") == 2.0f);
}

TEST_CASE("same copies a number and refers to a tensor") {
  static_assert(std::is_same_v<decltype(dist::same(1)), dist::Same<int>>);
  const dist::Tensor<float> tensor{{2, 3}};
  const dist::Same<dist::TensorView<const float>> marked = dist::same(tensor);
  CHECK(marked.value.data() == tensor.data());
  CHECK(marked.value.shape() == dist::Shape{2, 3});
}
