// expect: the sentence
// only error
#ifndef CONTROL
static_assert(sizeof(char) == 2, "the sentence");
int value = twice(2);
#endif
