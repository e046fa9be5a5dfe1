/* A source that cannot include C++ headers: dist_precompile leaves it alone. */
int other_language(void);
int other_language(void) { return 0; }
