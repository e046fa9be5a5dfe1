# A test that writes small files of Fashion-MNIST into dist_small_fashion_mnist_dir, and sets up the fixture
# small_fashion_mnist: for examples that would take long with the real ones.
set(dist_small_fashion_mnist_dir "${PROJECT_BINARY_DIR}/small_fashion_mnist")
if(NOT TARGET dist_small_fashion_mnist)
  add_executable(dist_small_fashion_mnist "${CMAKE_CURRENT_LIST_DIR}/small_fashion_mnist.cpp")
  target_link_libraries(dist_small_fashion_mnist PRIVATE dist::dist dist_program)
  add_test(NAME example.small_fashion_mnist COMMAND dist_small_fashion_mnist "${dist_small_fashion_mnist_dir}")
  set_tests_properties(example.small_fashion_mnist PROPERTIES FIXTURES_SETUP small_fashion_mnist)
endif()
