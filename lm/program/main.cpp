#include "ranks.hpp"

int main(int argc, char** argv) {
  program::Ranks alone;
  return program::main(argc, argv, alone);
}
