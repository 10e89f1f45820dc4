// Calls the part that this program is linked to, then a plugin's.
#include <dlfcn.h>

#include <cstdio>

extern "C" int part();

int main(int, char** argv) {
  void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* const found = plugin == nullptr ? nullptr : dlsym(plugin, "part");
  if (found == nullptr) {
    std::puts(dlerror());
    return 1;
  }
  return part() != 0 || reinterpret_cast<int (*)()>(found)() != 0 || part() != 0;
}
