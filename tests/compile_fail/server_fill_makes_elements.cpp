// expect: initial values need a callable fill(first, elements)
#include <dist/rpc/local_transport.hpp>
#include <dist/server/client.hpp>

int main() {
  dist::server::Client<dist::Local> client{0, {"here", "1"}};
#ifdef CONTROL
  client.create_filled<float>({1, "w"}, [](std::uint64_t i) { return static_cast<float>(i); });
#else
  client.create_filled<float>({1, "w"}, [](std::uint64_t) { return "zero"; });
#endif
}
