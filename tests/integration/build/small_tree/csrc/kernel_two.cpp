#include <map>
#include <string>

namespace at {
std::map<std::string, int> two() { return {{"two", 2}}; }
}  // namespace at
