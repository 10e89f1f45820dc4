// The texts of a pretrained folder, the ids that end a text, and greedy texts with penalties.

#include <filesystem>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/lm/pretrained.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

TEST_CASE("pretrained: a folder's metadata is saved again", "[pretrained]") {
  const TemporaryFolder folder;
  const lm::GPT model(
      {.block_size = 4, .vocab_size = 5, .n_layer = 1, .n_head = 1, .n_embd = 4, .bias = true});
  const io::JsonObject metadata{
      {"config.json", io::JsonObject{{"bos_token_id", std::uint64_t{1}},
                                     {"eos_token_id", io::JsonArray{std::uint64_t{2}}}}},
      {"generation_config.json", R"({"top_k": 5})"},
      {"tokenizer_config.json", "\n{}"},
      {"special_tokens_map.json", "{}"},
      {"chat_template.jinja", "{{ a }}"}};
  lm::save_pretrained(folder / "a", model, false, metadata);
  CHECK(lm::read_pretrained_metadata(folder / "a") == metadata);
  // Without any, null ones: transformers' own defaults are another model's.
  lm::save_pretrained(folder / "b", model);
  CHECK(io::format_json(lm::read_pretrained_metadata(folder / "b")) ==
        R"({"config.json":{"bos_token_id":null,"eos_token_id":null}})");
  // All of it or nothing is written.
  std::filesystem::create_directory(folder / "c");
  write_bytes(folder / "c/chat_template.jinja", "");
  CHECK_THROWS_AS(lm::save_pretrained(folder / "c", model, false, metadata), FileError);
  CHECK_FALSE(std::filesystem::exists(folder / "c/config.json"));
  write_bytes(folder / "a/chat_template.jinja", "\xFF");
  CHECK_THAT(message_of<FileError>([&] { lm::read_pretrained_metadata(folder / "a"); }),
             ContainsSubstring("a/chat_template.jinja: "));
}

TEST_CASE("pretrained: the ids that end a text", "[pretrained]") {
  using List = std::vector<std::int64_t>;
  const auto of = [](const char* config, const char* generation = nullptr) {
    io::JsonObject metadata{{"config.json", io::parse_json(config)}};
    if (generation != nullptr)
      metadata.emplace_back("generation_config.json", generation);
    return lm::end_of_text_ids(metadata, "FOLDER");
  };
  // Each as in transformers' generate().
  CHECK(of(R"({"eos_token_id": 7})") == List{7});
  CHECK(of(R"({"eos_token_id": [7, 0]})") == List{7, 0});
  CHECK(of(R"({"eos_token_id": null})").empty());
  CHECK(of("{}").empty());
  CHECK(of(R"({"eos_token_id": 7})", R"({"eos_token_id": [3, 4]})") == List{3, 4});
  CHECK(of(R"({"eos_token_id": 7})", R"({"eos_token_id": null})").empty());
  CHECK(of(R"({"eos_token_id": 7})", R"({"top_k": 2})").empty());
  for (const char* const wrong : {"\"a\"", "-1", "[1, 2.5]", "{}", "4294967296"})
    for (const bool generation : {false, true}) {
      const std::string json = std::string(R"({"eos_token_id": )") + wrong + "}";
      check_contains(
          message_of<FileError>([&] { generation ? of("{}", json.c_str()) : of(json.c_str()); }),
          {generation ? "FOLDER: generation_config.json: " : "FOLDER: config.json: ",
           "eos_token_id is ", "it must be an id or a list of ids"});
    }
  CHECK_THAT(message_of<FileError>([&] { of("{}", "{"); }),
             ContainsSubstring("FOLDER: generation_config.json: is not JSON"));
}

TEST_CASE("pretrained: greedy texts with penalties are those of transformers", "[pretrained]") {
  const lm::GPT model = lm::load_pretrained(source_dir + "/tests/lm/golden/pretrained/llama");
  const auto generated = [&](const lm::LogitsProcessor& processor) {
    Generator generator(1);
    const Indices all = model.generate({{1, 5, 3, 1}, {2, 2, 7, 0}}, 12, generator,
                                       {.temperature = 0, .logits_processor = processor});
    return numbers(all.narrow(1, 4, 12).flatten());
  };
  using List = std::vector<std::int64_t>;  // of transformers 5.24
  CHECK(generated(lm::repetition_penalty(1.5)) ==
        List{6, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 4, 4, 4, 4, 4, 4, 4, 10, 1, 1, 1, 1});
  CHECK(generated(lm::repetition_penalty(0.6)) ==
        List{1, 1, 1, 1, 1, 6, 6, 6, 6, 6, 6, 6, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 4});
  CHECK(generated(lm::no_repeat_ngram(2)) ==
        List{6, 6, 7, 7, 6, 3, 7, 3, 6, 8, 7, 8, 0, 9, 9, 6, 6, 4, 4, 2, 0, 2, 4, 0});
  CHECK(generated([](const Indices& tokens, const Tensor& logits) {
          return lm::no_repeat_ngram(3)(tokens, lm::repetition_penalty(1.2)(tokens, logits));
        }) == List{6, 7, 7, 7, 6, 6, 6, 7, 6, 7, 8, 6, 4, 4, 4, 0, 4, 0, 0, 4, 2, 4, 4, 2});
}
