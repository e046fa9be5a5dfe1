#include <nccl.h>

int main() {
  int version = 0;
  return ncclGetVersion(&version) == 0 && version == 29901 ? 0 : 1;
}
