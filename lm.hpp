#pragma once
// Language models in one header: GPT with generation, texts and tokens, pretrained folders,
// adapters.

#include "lm/adapters.hpp"
#include "lm/byte_pairs.hpp"
#include "lm/characters.hpp"
#include "lm/gpt.hpp"
#include "lm/pretrained.hpp"
#include "lm/text.hpp"
#include "lm/tokenizer.hpp"
