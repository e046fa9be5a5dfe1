// expect: AlignedBuffer holds plain numbers: its element type must be trivially copyable
#include <dist/core/aligned_buffer.hpp>

#include <string>

int main() {
#ifdef CONTROL
  const dist::AlignedBuffer<float> buffer(3);
#else
  const dist::AlignedBuffer<std::string> buffer(3);
#endif
  return buffer.size() == 3 ? 0 : 1;
}
