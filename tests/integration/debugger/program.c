/* Says `ready` and stands in `innermost`, in one of several ways. A second thread waits all the time. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct point { int x, y; };
int around(int (*inner)(int, const char *, struct point *), int number);
static volatile int spinning = 1;

static void ready(void) {
  puts("ready");
  fflush(stdout);
  while (spinning) spinning++;
}

static void on_fault(int number) {
  (void)number;
  ready();
}

__attribute__((noinline)) int enter(int first, int second) {
  int sum = first + second;
  return sum * 2;
}

__attribute__((noinline)) int innermost(int number, const char *text, struct point *place) {
  int doubled = number * 2;
  const char *nowhere = (const char *)8;
  ready();
  return doubled + text[0] + place->x + enter(number, doubled) + (nowhere == text);
}

static int jump_nowhere(int number, const char *text, struct point *place) {
  void (*volatile wild)(void) = 0;
  (void)text;
  wild();
  return number + place->x;
}

static void *waiting(void *unused) {
  pause();
  return unused;
}

int main(int count, char **arguments) {
  pthread_t thread;
  pthread_create(&thread, NULL, waiting, NULL);
  if (count > 1 && strcmp(arguments[1], "crash") == 0) {
    signal(SIGSEGV, on_fault);
    return around(jump_nowhere, 20);
  }
  return around(innermost, 20);
}
