#include <small/small.h>
#include <string>

namespace at {
std::string one() { return std::to_string(SMALL_VERSION); }
}  // namespace at
