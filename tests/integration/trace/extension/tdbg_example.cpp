// A user's operator, built with debug information: what `tdbg trace --break` shows lines, arguments and locals of.
#include <torch/extension.h>

namespace tdbg_example {

void scaled_add_rows(const float* a, const float* b, float* out, int64_t count, float alpha) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = a[i] + alpha * b[i];
  }
}

at::Tensor scaled_add_kernel_cpu(const at::Tensor& a, const at::Tensor& b, double alpha) {
  TORCH_CHECK(a.sizes() == b.sizes(), "scaled_add: the shapes differ");
  at::Tensor first = a.contiguous();
  at::Tensor second = b.contiguous();
  at::Tensor out = at::empty_like(first);
  scaled_add_rows(
      first.const_data_ptr<float>(),
      second.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(),
      first.numel(),
      static_cast<float>(alpha));
  return out;
}

} // namespace tdbg_example

TORCH_LIBRARY(tdbg_example, m) {
  m.def("scaled_add(Tensor a, Tensor b, float alpha) -> Tensor");
}

TORCH_LIBRARY_IMPL(tdbg_example, CPU, m) {
  m.impl("scaled_add", &tdbg_example::scaled_add_kernel_cpu);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scaled_add", &tdbg_example::scaled_add_kernel_cpu);
}
