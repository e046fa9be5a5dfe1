#ifndef CONTROL
static_assert(sizeof(char) == 2);
#endif
