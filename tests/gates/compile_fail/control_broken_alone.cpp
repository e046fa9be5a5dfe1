// expect: 'twice' was not declared
// alone: as a case may ask for
int value = twice(1);
