// expect: the sentence
#ifndef CONTROL
static_assert(sizeof(char) == 2, "the sentence");
int one = twice(1);
int two = twice(2);
int three = twice(3);
int four = twice(4);
#endif
