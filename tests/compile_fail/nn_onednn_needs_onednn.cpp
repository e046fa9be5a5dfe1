// expect: <dnnl.hpp> of oneDNN was not found: install libdnnl-dev, and link dist::onednn
// flags: -nostdinc
#include <dist/nn/onednn/api.hpp>

int main() {}
