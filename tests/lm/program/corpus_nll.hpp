#pragma once

#include <cstddef>
#include <numeric>

#include <xgrad/lm/program/corpus.hpp>

/// The lowest mean loss that a model can have over a part of a corpus.
inline double mean_nll(const corpus::Corpus& corpus, std::size_t begin, std::size_t end) {
  return std::accumulate(corpus.nll.data() + begin, corpus.nll.data() + end, 0.0) /
         static_cast<double>(end - begin);
}
