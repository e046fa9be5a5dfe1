#include "operation.hpp"

#include <utility>

namespace fake_cuda {
namespace {

std::set<std::pair<int, int>> accesses;  // from a GPU to the memory of another

}  // namespace

std::string describe(const Operation& operation) {
  return "'" + operation.name + "' of stream " + std::to_string(operation.stream) + " on GPU " +
         std::to_string(operation.device);
}

bool may_touch(const Operation& operation, int device) {
  switch (operation.reach) {
    case Reach::peers:
      return operation.device == device || accesses.contains({operation.device, device});
    case Reach::all:
      return true;
    case Reach::none:
      break;
  }
  return false;
}

bool give_access(int device, int peer) { return accesses.insert({device, peer}).second; }
void reset_access() { accesses.clear(); }

}  // namespace fake_cuda
