// expect: <protozero/pbf_writer.hpp> of protozero was not found: install libprotozero-dev, and link dist::summary
// flags: -nostdinc
#include <dist/io/protobuf.hpp>

int main() {}
