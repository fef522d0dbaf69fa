// Values of PyTorch's types, built with debug information: what the printers are held against.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

namespace tdbg_values {

volatile int64_t stops = 0;

__attribute__((noinline)) void here() {
  stops = stops + 1;
}

// Each line of memory is put into a Tensor's place without a constructor, and never destroyed.
union Raw {
  void* pointer;
  at::Tensor tensor;
  Raw(void* value) : pointer(value) {}
  ~Raw() {}
};

void look(
    at::TensorList tensors,
    const std::optional<at::Tensor>& maybe,
    c10::SymInt count,
    at::OptionalIntArrayRef dims,
    const at::Scalar& scalar) {
  const at::Tensor& first = tensors[0];
  at::Tensor result = first * 2;
  std::optional<at::Tensor> nothing;
  c10::intrusive_ptr<c10::TensorImpl> owner = first.getIntrusivePtr();
  c10::TensorImpl* implementation = first.unsafeGetTensorImpl();
  c10::Storage storage = first.storage();
  c10::StorageImpl* storage_implementation = storage.unsafeGetStorageImpl();
  c10::SmallVector<int64_t, 5> small{1, 2, 3};
  c10::IntArrayRef shape = first.sizes();
  c10::ArrayRef<at::Tensor> none;
  c10::ScalarType type = first.scalar_type();
  c10::Layout layout = first.layout();
  c10::Device device = first.device();
  c10::Device accelerator(c10::DeviceType::CUDA, 3);
  c10::DispatchKeySet keys = first.key_set();
  c10::SymInt negative(-7);
  c10::Scalar fraction(0.5), whole(int64_t(3)), truth(true), imaginary(c10::complex<double>(1, -2));
  c10::IValue of_tensor(first), of_int(int64_t(-4)), of_double(2.5), of_bool(true), of_none, of_string("text");
  c10::IValue of_device(accelerator), of_list(std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  c10::List<c10::IValue> cyclic_list(c10::AnyType::get());
  c10::IValue cyclic(cyclic_list);
  cyclic_list.push_back(cyclic);
  c10::OperatorName name("aten::add", "Tensor");
  c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(result);
  torch::autograd::Node* node = edge.function.get();
  torch::autograd::Edge no_edge;
  at::Tensor undefined;
  Raw null(nullptr), unmapped((void*)0x10), wild((void*)0xdead00000000beef), nothing_there(new int64_t[64]());
  at::Tensor short_lived = at::ones({3});
  Raw freed(short_lived.unsafeGetTensorImpl());
  short_lived = at::Tensor();
  torch::autograd::Node* no_node = nullptr;
  torch::autograd::AutogradMeta* meta = torch::autograd::impl::get_autograd_meta(result);
  here();
  (void)no_node;
  (void)meta;
  cyclic_list.clear();
}

} // namespace tdbg_values

TORCH_LIBRARY(tdbg_values, library) {
  library.def(
      "look(Tensor[] tensors, Tensor? maybe, SymInt count, int[]? dims, Scalar scalar) -> ()", &tdbg_values::look);
}
