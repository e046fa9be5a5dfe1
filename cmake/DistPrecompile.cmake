# dist_precompile(<target> [<header>...]): the C++ sources of the target see <dist/dist.hpp>, or these headers, as if they
# included it first, compiled once for all of them. A header stands without its angle brackets: dist/nn.hpp.
function(dist_precompile target)
  set(headers ${ARGN})
  if(NOT headers)
    set(headers dist/dist.hpp)
  endif()
  # A target may have sources in other languages, which cannot include them.
  list(TRANSFORM headers REPLACE "^(.+)$" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()
