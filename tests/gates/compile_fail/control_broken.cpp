// expect: 'twice' was not declared
#ifdef CONTROL
int value = twice(1);
#else
int value = twice(2);
#endif
