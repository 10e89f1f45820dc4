#include "manual.hpp"

namespace char_transformer {

std::vector<command_line::Section> manual() {
  return {
      {"CONFIGURATION FILES",
       "The file of --config holds a JSON object. Its keys are names of flags, with _ or - between "
       "the words, and its values are numbers, true, false and texts; null is as good as absent. A "
       "run's own config.json is one. Flags beat the file, the file beats --preset, and both count "
       "as given: what disagrees with the run that --resume goes on with, or the model of "
       "--init-from, is refused. --print-config prints all values in effect, of a run that is "
       "resumed its own, as a file that --config reads. Paths in a file are seen from where the "
       "program runs.\n"},
      {"DRAWING",
       "The order is that of HuggingFace's transformers: logits are divided by --temperature; "
       "--top-k keeps the k likeliest characters; --top-p (Holtzman et al., 2020) keeps the "
       "likeliest of these until they have this probability together; --min-p (Nguyen et al., "
       "2024) keeps what is at least this many times as likely as the likeliest. After each step "
       "probabilities are divided by their sum. The same seed gives the same text on any number of "
       "threads.\n"},
      {"EXIT STATUS",
       "0: all went well.\n1: a file, the memory or the machine did not do.\n2: the command line "
       "or "
       "a configuration file did not do.\n3: a loss was not finite.\n128 + N: ended by signal N.\n",
       true},
      {"EXAMPLES",
       "char_transformer train --data shakespeare.txt --preset nano\n"
       "char_transformer train --resume runs/000\n"
       "char_transformer train --config runs/000/config.json --seed 1\n"
       "char_transformer sample --checkpoint runs/000/checkpoint.safetensors --prompt \"To be\"\n"
       "char_transformer sample --checkpoint runs/000/best.safetensors --interactive --top-p 0.9\n",
       true}};
}

}  // namespace char_transformer
