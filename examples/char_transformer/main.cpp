#include "ranks.hpp"

int main(int argc, char** argv) {
  char_transformer::Ranks alone;
  return char_transformer::main(argc, argv, alone);
}
