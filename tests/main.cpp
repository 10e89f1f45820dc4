// Catch2 3 brings its own main.
#ifdef XGRAD_CATCH2_V2
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
