#include <dist/summary/protobuf.hpp>
#include <protozero/version.hpp>

int main() {
  const auto bytes =
      dist::summary::detail::protobuf([](auto& message) { message.add_bool(1, PROTOZERO_VERSION_MAJOR > 0); });
  return bytes.size() == 2 ? 0 : 1;
}
