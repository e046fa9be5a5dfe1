# User projects, built as users do: against an installed dist, by CMake and by pkg-config, and with dist fetched.
set(stage "${CMAKE_CURRENT_BINARY_DIR}/stage")
set(components "")
foreach(component IN LISTS dist_components)
  string(TOUPPER ${component} upper)
  if(DIST_HAVE_${upper})
    list(APPEND components ${component})
  endif()
endforeach()
string(REPLACE ";" "," components "${components}")

add_test(NAME consumers.clean_stage COMMAND "${CMAKE_COMMAND}" -E rm -rf "${stage}")
add_test(NAME consumers.install COMMAND "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${stage}")
set_tests_properties(consumers.clean_stage PROPERTIES FIXTURES_SETUP dist_clean_stage)
set_tests_properties(consumers.install PROPERTIES FIXTURES_REQUIRED dist_clean_stage FIXTURES_SETUP dist_stage)

# dist_add_consumer(<project>[.<variant>] <options of CMake>...). A build type without flags is fastest; without a build
# type, the compiled parts would be optimized.
set(dist_consumer_options --build-generator "${CMAKE_GENERATOR}" --build-options "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
    -DCMAKE_BUILD_TYPE=None)
function(dist_add_consumer name)
  string(REGEX REPLACE "[.].*" "" project "${name}")
  add_test(NAME consumers.${name}
           COMMAND "${CMAKE_CTEST_COMMAND}" --build-and-test "${CMAKE_CURRENT_SOURCE_DIR}/consumers/${project}"
                   "${CMAKE_CURRENT_BINARY_DIR}/consumers/${name}" ${dist_consumer_options} ${ARGN} --test-command ctest
                   --output-on-failure --no-tests=error)
  set_tests_properties(consumers.${name} PROPERTIES TIMEOUT 900 COST 70)
endfunction()

add_test(NAME consumers.dist_run COMMAND "${stage}/${CMAKE_INSTALL_BINDIR}/dist-run" --secret -n 2 -- printenv TF_CONFIG)
set_tests_properties(consumers.dist_run PROPERTIES FIXTURES_REQUIRED dist_stage TIMEOUT 120
                     PASS_REGULAR_EXPRESSION "worker 1. {.*\"index\": 1}}")

dist_add_consumer(find_package "-DCMAKE_PREFIX_PATH=${stage}" "-DCOMPONENTS=${components}")
set_tests_properties(consumers.find_package PROPERTIES FIXTURES_REQUIRED dist_stage FIXTURES_SETUP dist_consumer)
if(DIST_HAVE_MPI)
  foreach(program IN ITEMS consumer_mpi own_mpi_alone)
    string(REPLACE consumer_mpi own_mpi test ${program})
    add_test(NAME consumers.${test}
             COMMAND ${dist_mpirun} -n 2 "${CMAKE_CURRENT_BINARY_DIR}/consumers/find_package/${program}")
    set_tests_properties(consumers.${test} PROPERTIES FIXTURES_REQUIRED "dist_stage;dist_consumer" TIMEOUT 60
                         PROCESSORS 2 PASS_REGULAR_EXPRESSION "2 processes, norm 70.7107")
  endforeach()
endif()

# An installation without packages has only the headers that need none.
set(bare_stage "${CMAKE_CURRENT_BINARY_DIR}/stage_without_packages")
add_test(NAME consumers.install_without_packages
         COMMAND "${CMAKE_CTEST_COMMAND}" --build-and-test "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}/without_packages"
                 --build-target install ${dist_consumer_options} -DDIST_PACKAGES=OFF -DDIST_TESTS=OFF -DDIST_BENCHMARKS=OFF -DDIST_EXAMPLES=OFF
                 "-DCMAKE_INSTALL_PREFIX=${bare_stage}")
set_tests_properties(consumers.install_without_packages PROPERTIES FIXTURES_SETUP dist_bare_stage TIMEOUT 300 COST 60)
dist_add_consumer(find_package.without_packages "-DCMAKE_PREFIX_PATH=${bare_stage}" -DCOMPONENTS=)
set_tests_properties(consumers.find_package.without_packages PROPERTIES FIXTURES_REQUIRED dist_bare_stage)

if(DIST_HAVE_NVCC AND DIST_HAVE_CUDA)
  dist_add_consumer(cuda_language "-DCMAKE_PREFIX_PATH=${stage}" "-DCMAKE_CUDA_COMPILER=${NVCC_PROGRAM}")
  set_tests_properties(consumers.cuda_language PROPERTIES FIXTURES_REQUIRED dist_stage)
endif()
dist_add_consumer(wheels "-DMODULES=${PROJECT_SOURCE_DIR}/cmake")
add_test(NAME gates.wheels COMMAND "${CMAKE_COMMAND}" "-DDIRECTORY=${CMAKE_CURRENT_BINARY_DIR}/wheels"
                                   -P "${CMAKE_CURRENT_SOURCE_DIR}/gates/wheels_check.cmake")
add_test(NAME gates.nvcc_version COMMAND "${CMAKE_COMMAND}" "-DDIRECTORY=${CMAKE_CURRENT_BINARY_DIR}/nvcc_version"
                                         -P "${CMAKE_CURRENT_SOURCE_DIR}/gates/nvcc_version_check.cmake")
dist_add_consumer(fetch_content "-DFETCHCONTENT_SOURCE_DIR_DIST=${PROJECT_SOURCE_DIR}")
add_test(NAME consumers.pkg_config
         COMMAND "${CMAKE_COMMAND}" "-DSTAGE=${stage}" "-DCXX=${CMAKE_CXX_COMPILER}"
                 "-DPROGRAM=${CMAKE_CURRENT_BINARY_DIR}/consumers/by_pkg_config"
                 -P "${CMAKE_CURRENT_SOURCE_DIR}/consumers/pkg_config/test.cmake")
set_tests_properties(consumers.pkg_config PROPERTIES FIXTURES_REQUIRED dist_stage TIMEOUT 300 COST 70)
