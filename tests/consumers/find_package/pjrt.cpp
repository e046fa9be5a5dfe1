#include <dist/device/pjrt/client.hpp>

int main() {
  try {
    static_cast<void>(dist::pjrt::load_plugin("/nowhere/plugin.so"));
  } catch (const dist::NoPlugin&) {
    return 0;
  }
  return 1;
}
