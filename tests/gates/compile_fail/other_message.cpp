// expect: a sentence that no compiler says
#ifndef CONTROL
static_assert(sizeof(char) == 2, "another sentence");
#endif
