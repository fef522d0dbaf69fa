// Ways to die, one function each. Built with -g -O1 -D_GLIBCXX_ASSERTIONS -fno-strict-aliasing -pthread.
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define WAY(name) extern "C" __attribute__((noinline, visibility("default"))) void name

struct Handle { long other; long value; };
volatile long sink;

__attribute__((noinline)) static long value_of(Handle* handle) { return handle->value; }
WAY(null_pointer)() { sink = value_of(nullptr); }
WAY(read_at)(char* address) { sink = *address; }
WAY(write_at)(char* address) { *address = 1; }
WAY(call_at)(void (*function)()) { function(); sink = 1; }

WAY(ud2)() { __builtin_trap(); }
WAY(avx512_fp16)() { asm volatile(".byte 0x62,0xf5,0x7c,0x48,0x58,0xc0"); }  // vaddph %zmm0,%zmm0,%zmm0
WAY(amx)() { asm volatile(".byte 0xc4,0xe2,0x7b,0x49,0xc0"); }                // tilezero %tmm0

__attribute__((noinline)) static long endless(long depth) {
  volatile char room[256];
  room[depth & 255] = static_cast<char>(depth);
  return endless(depth + 1) + room[0];
}
WAY(overflow_stack)() { sink = endless(1); }
WAY(overflow_stack_of_thread)() { std::thread(overflow_stack).join(); }

WAY(divide)(long by) { sink = 7 / static_cast<int>(by); }
WAY(free_twice)() {
  std::vector<char*> others;  // past the thread cache, which has a message of its own
  char* volatile block = static_cast<char*>(std::malloc(2000));
  others.push_back(static_cast<char*>(std::malloc(2000)));
  std::free(block);
  std::free(block);
}
WAY(free_wild)() { std::free(const_cast<long*>(&sink) + 1); }
WAY(go_out_of_range)(long index) {
  std::vector<int> numbers(3);
  sink = numbers[index];
}
WAY(fail_assertion)(long x) { assert(x == 1 && "the answer"); sink = x; }
WAY(throw_in_thread)() {
  std::thread([] { throw std::runtime_error("the thread's own error"); }).join();
}
struct Own : std::logic_error { using std::logic_error::logic_error; };
__attribute__((noinline)) static void raise_own() { throw Own("of a class of its own"); }
WAY(throw_in_noexcept)() { [](auto call) noexcept { call(); }(raise_own); }
WAY(throw_bad_alloc)() {
  std::thread([] { std::vector<char*> all; for (;;) all.push_back(new char[1L << 40]); }).join();
}
extern "C" int PyList_Size(void*);
extern "C" void* PyList_New(long);
WAY(use_python_without_gil)() { std::thread([] { sink = reinterpret_cast<long>(PyList_New(3)); }).join(); }
extern "C" void* PyThreadState_Get();
WAY(ask_thread_state)() { std::thread([] { sink = reinterpret_cast<long>(PyThreadState_Get()); }).join(); }
