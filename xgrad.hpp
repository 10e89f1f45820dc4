#pragma once
// What a program needs, in one header.  Not among it, because they take longer to compile: the
// bridge to xtensor with array() and update(), <xgrad/autograd/xtensor.hpp>, and what ops of your
// own are made of, <xgrad/autograd/custom_op.hpp>.

#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/check/functional.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/format.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/data/batches.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/corpus/corpus.hpp>
#include <xgrad/data/text.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/model.hpp>
#include <xgrad/io/picture.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/nn/activations.hpp>
#include <xgrad/nn/check_layer.hpp>
#include <xgrad/nn/dropout.hpp>
#include <xgrad/nn/embedding.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/nn/gradcheck.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/key_value_cache.hpp>
#include <xgrad/nn/layer_norm.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/nn/masks.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/nn/multi_head_attention.hpp>
#include <xgrad/nn/rms_norm.hpp>
#include <xgrad/nn/self_attention.hpp>
#include <xgrad/nn/sequential.hpp>
#include <xgrad/nn/transformer_block.hpp>
#include <xgrad/optim/adam.hpp>
#include <xgrad/optim/clip.hpp>
#include <xgrad/optim/optimizer.hpp>
#include <xgrad/optim/schedule.hpp>
#include <xgrad/optim/sgd.hpp>
#include <xgrad/parallel/shards.hpp>
