#include <Python.h>

namespace at {
long add(long a, long b);
}

static PyObject* add(PyObject*, PyObject* arguments) {
  long a, b;
  if (!PyArg_ParseTuple(arguments, "ll", &a, &b)) return nullptr;
  return PyLong_FromLong(at::add(a, b));
}

static PyMethodDef methods[] = {{"add", add, METH_VARARGS, "a + b"}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "torch._C", nullptr, -1, methods};

PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
