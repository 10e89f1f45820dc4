// The texts of a pretrained folder, and the ids that end a text.

#include <filesystem>
#include <vector>
#include <xgrad/io/pretrained.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

TEST_CASE("pretrained: a folder's metadata is saved again", "[pretrained]") {
  const TemporaryFolder folder;
  const nn::GPT model(
      {.block_size = 4, .vocab_size = 5, .n_layer = 1, .n_head = 1, .n_embd = 4, .bias = true});
  const io::JsonObject metadata{
      {"config.json", io::JsonObject{{"bos_token_id", std::uint64_t{1}},
                                     {"eos_token_id", io::JsonArray{std::uint64_t{2}}}}},
      {"generation_config.json", R"({"top_k": 5})"},
      {"tokenizer_config.json", "\n{}"},
      {"special_tokens_map.json", "{}"},
      {"chat_template.jinja", "{{ a }}"}};
  io::save_pretrained(folder / "a", model, false, metadata);
  CHECK(io::read_pretrained_metadata(folder / "a") == metadata);
  // Without any, null ones: transformers' own defaults are another model's.
  io::save_pretrained(folder / "b", model);
  CHECK(io::format_json(io::read_pretrained_metadata(folder / "b")) ==
        R"({"config.json":{"bos_token_id":null,"eos_token_id":null}})");
  // All of it or nothing is written.
  std::filesystem::create_directory(folder / "c");
  write_bytes(folder / "c/chat_template.jinja", "");
  CHECK_THROWS_AS(io::save_pretrained(folder / "c", model, false, metadata), FileError);
  CHECK_FALSE(std::filesystem::exists(folder / "c/config.json"));
  write_bytes(folder / "a/chat_template.jinja", "\xFF");
  CHECK_THAT(message_of<FileError>([&] { io::read_pretrained_metadata(folder / "a"); }),
             ContainsSubstring("a/chat_template.jinja: "));
}

TEST_CASE("pretrained: the ids that end a text", "[pretrained]") {
  using List = std::vector<std::int64_t>;
  const auto of = [](const char* config, const char* generation = nullptr) {
    io::JsonObject metadata{{"config.json", io::parse_json(config)}};
    if (generation != nullptr)
      metadata.emplace_back("generation_config.json", generation);
    return io::end_of_text_ids(metadata, "FOLDER");
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
