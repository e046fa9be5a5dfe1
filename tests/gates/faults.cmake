# tests/faults: a test starts workers, processes of the program faults_worker, disturbs one and looks what the others say.
set(faults_test test_faults_faulty_workers)
dist_requirements("${CMAKE_CURRENT_SOURCE_DIR}/faults/worker.cpp")
if(NOT TARGET ${faults_test} OR dist_missing)
  return()
endif()
dist_compiled_libraries("${CMAKE_CURRENT_SOURCE_DIR}/faults/worker.cpp")
add_executable(faults_worker faults/worker.cpp)
target_link_libraries(faults_worker PRIVATE ${dist_libraries} dist_program)
target_compile_options(faults_worker PRIVATE $<$<CONFIG:Release>:-O0>)
add_dependencies(${faults_test} faults_worker)
target_compile_definitions(${faults_test} PRIVATE DIST_FAULTS_WORKER="$<TARGET_FILE:faults_worker>"
                                                  DIST_MPIRUN="${DistMPI_MPIRUN}")
# It gives processes little time, and so gets both processors of a small machine; it takes a minute, and starts first.
set_tests_properties(faults.faulty_workers PROPERTIES LABELS faults PROCESSORS 2 COST 100 TIMEOUT 400)
