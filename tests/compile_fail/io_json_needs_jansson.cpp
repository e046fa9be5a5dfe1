// expect: <jansson.h> of jansson was not found: install libjansson-dev, and link dist::json
// flags: -nostdinc
#include <dist/io/json.hpp>

int main() {}
