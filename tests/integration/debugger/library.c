/* A library between two functions of the program: `around` calls back. */
struct point { int x, y; };

__attribute__((noinline)) int around(int (*inner)(int, const char *, struct point *), int number) {
  struct point place = {number + 1, number + 2};
  int result = inner(number * 2, "a text", &place);
  return result + place.x + place.y;
}
