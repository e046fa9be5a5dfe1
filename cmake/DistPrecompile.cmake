# dist_precompile(<target> [<header>...]): precompiles <dist/dist.hpp>, or the given headers, and includes them in all
# C++ sources of the target. Headers are given without angle brackets: dist/nn.hpp.
function(dist_precompile target)
  set(headers ${ARGN})
  if(NOT headers)
    set(headers dist/dist.hpp)
  endif()
  # Sources in other languages cannot include them.
  list(TRANSFORM headers REPLACE "^(.+)$" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()
