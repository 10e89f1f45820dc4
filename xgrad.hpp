#pragma once
// The library in one header, without custom elementwise ops and updates, whose SIMD code is slow to
// compile (<xgrad/autograd/custom_op.hpp>, <xgrad/autograd/update_formula.hpp>), and without pages
// for a browser (<xgrad/pages/attention.hpp>, <xgrad/pages/graph.hpp>).

#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/format.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/recompute.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/data/byte_pairs.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/adapters.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/pretrained.hpp>
#include <xgrad/io/reference.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/io/tokenizer.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/nn/recurrent.hpp>
#include <xgrad/optim/optimizer.hpp>
#include <xgrad/optim/optimizers.hpp>
#include <xgrad/parallel/shards.hpp>
