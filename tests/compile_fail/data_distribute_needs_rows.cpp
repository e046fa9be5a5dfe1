// expect: distribute_dataset splits batches into rows: the elements must be Tensors
#include <dist/data.hpp>

struct Sums {
  float sum = 0;
};

int main() {
  auto batches = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}}) | dist::data::batch(2);
#ifdef CONTROL
  dist::data::DistributedDataset distributed{batches | dist::data::map([](const auto& rows) { return rows; }), 2};
#else
  dist::data::DistributedDataset distributed{batches | dist::data::map([](const auto& rows) { return Sums{rows[0]}; }),
                                             2};
#endif
}
