// expect: the sentence
#ifndef CONTROL
int value = twice(2);
static_assert(sizeof(char) == 2, "the sentence");
#endif
