// expect: static assertion failed
static_assert(sizeof(char) == 1);
