#include <cstdio>
#include <new>
#include <string>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "flags.hpp"
#include "output.hpp"
#include "training.hpp"

namespace program {

int main(int argc, char** argv, Ranks& ranks) {
#if defined(__GLIBC__)
  // Fixes glibc's initial value, which it would raise, and then keep freed memory.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
  occupy_closed_streams();
  if (ranks.rank() > 0)
    be_silent();
  CommandLine line;
  std::string why;
  try {
    ranks.together([&] { parse(argc, argv, ranks, line); });
    if (line.run == nullptr)
      return exit_code(0);
    if (ranks.size() > 1 && line.command != "xgrad train")
      throw UsageError("only the command train works on several processes");
    return exit_code(line.run());
  } catch (const UsageError& error) {  // on all ranks
    const std::string& name = line.command;
    if (ranks.rank() == 0)
      std::fprintf(stderr, "%s: %s\n'%s --help' lists what it takes.\n", name.c_str(),
                   xgrad::printable(error.what()).c_str(), name.c_str());
    return 2;
  } catch (const NotFinite& error) {  // on all ranks
    warn(error.what());
    return 3;
  } catch (const std::bad_alloc&) {
    why = "not enough memory";
  } catch (const std::exception& error) {
    why = error.what();
  }
  warn(why);
  ranks.failed(why);
  return 1;
}

}  // namespace program
