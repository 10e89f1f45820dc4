// The losses that a run measures, their texts, and losses that are not finite.

#include <fmt/format.h>

#include <cmath>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/lm/text.hpp>

#include "lm/program/run.hpp"

namespace {

xgrad::lm::GPT plain_model(xgrad::Size characters) {
  return xgrad::lm::GPT({.block_size = 8,
                         .vocab_size = characters,
                         .n_layer = 1,
                         .n_head = 2,
                         .n_embd = 16,
                         .dropout = 0,
                         .bias = false});
}

/// The mean loss of a checkpoint's model over the first blocks of a text, one by one.
double loss_over(const std::string& checkpoint, const std::string& text, std::size_t blocks,
                 bool validation = false) {
  const auto saved = xgrad::io::load_checkpoint(checkpoint);
  const lm::Characters characters = characters_in(saved);
  xgrad::lm::GPT model = plain_model(characters.size());
  xgrad::io::load_state(model, saved.model, "test");
  lm::Ids ids = characters.encode(lm::decode_utf8(text, "text"));
  if (validation)
    ids = lm::split(ids).validation;
  double total = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto [x, y] = lm::block_batch(ids, 8, i, 1);
    total += model.loss(x, y).item();
  }
  return total / static_cast<double>(blocks);
}

/// Multiplies a checkpoint's embeddings: no number becomes infinite, but every loss does.
void spoil(const std::string& checkpoint) {
  xgrad::io::TensorFile file = xgrad::io::load_safetensors(checkpoint);
  for (const char* const name : {"transformer.wte.weight", "transformer.ln_f.weight"}) {
    const xgrad::Shape shape = file.tensors.at(name).shape();
    std::vector<float> values(static_cast<std::size_t>(xgrad::numel(shape)), 1e38F);
    for (std::size_t i = 0; i < values.size(); i += 2)  // equal numbers would be normalised to 0
      values[i] = -1e38F;
    file.tensors[name] = xgrad::Tensor(values).reshape(shape);
  }
  xgrad::io::save_safetensors(checkpoint, file);
}

}  // namespace

TEST_CASE("xgrad: losses that are compared are estimates on the same batches", "[losses]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out short"));
  run_well(folder, tiny_train("--out long --max-iters 60"));
  const std::vector<Json> shorter = metrics_of(folder / "short"),
                          longer = metrics_of(folder / "long");
  // The last step's loss is an ordinary step's.
  CHECK(shorter[39].at("val_loss") == longer[39].at("val_loss"));
  double lowest = INFINITY;
  std::size_t best = 0;
  for (const Json& row : longer) {
    CHECK(row.contains("val_loss_over") ==
          (row.contains("val_loss") || row.contains("val_loss_before")));
    if (!row.contains("val_loss"))
      continue;
    CHECK(row.at("val_loss_over") == "2 random batches");
    if (row.at("val_loss") < lowest) {
      lowest = row.at("val_loss");
      best = row.at("step").get<std::size_t>() + 1;
    }
  }
  const auto checkpoint = xgrad::io::load_checkpoint(folder / "long/checkpoint.safetensors");
  const auto* const noted = checkpoint.user.find("evaluations");
  REQUIRE(noted != nullptr);
  CHECK(noted->number("best_step") == static_cast<double>(best));
  CHECK(*noted->number("best_loss") == Approx(lowest).epsilon(1e-8));
  CHECK(*noted->find<std::string>("best_loss_over") == "2 random batches");
  CHECK(xgrad::io::load_checkpoint(folder / "long/best.safetensors").step == best);
  // The loss over the whole split is separate, in the last row alone.
  for (std::size_t i = 0; i < longer.size(); ++i)
    CHECK(longer[i].contains("final_val_loss") == (i == 59));
  CHECK(longer[59].at("final_val_loss_over") == "all 29 blocks");
  CHECK(longer[59].at("final_val_loss").get<double>() ==
        Approx(loss_over(folder / "long/checkpoint.safetensors", tiny_text(), 29, true))
            .epsilon(1e-6));
  // So a run that is extended equals, to the byte, one that was long from the start.
  run_well(folder, "train --resume short --max-iters 60");
  for (const char* const name : {"/checkpoint.safetensors", "/best.safetensors"})
    CHECK((read_bytes(folder / ("short" + std::string(name))) ==
           read_bytes(folder / ("long" + std::string(name)))));
}

TEST_CASE("xgrad: compare and the report say which loss is which", "[losses]") {
  const TinyFolder folder;
  run_well(folder, tiny_train("--out a"));
  run_well(folder, tiny_train("--out b --seed 1"));
  run_well(folder, tiny_train("--out c --eval-iters 3"));
  const std::string alike = run_well(folder, "compare a b").out;
  check_contains(alike, {"best validation loss", "2 random batches", "final validation loss",
                         "all 29 blocks", "*"});
  // Losses over other batches are not comparable: none is the lowest.
  const std::string other = run_well(folder, "compare a c").out;
  check_contains(other, {"2 random batches", "3 random batches"});
  std::istringstream lines(other);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("best validation loss"))
      CHECK(line.find('*') == std::string::npos);
  run_well(folder, "compare a b --out page.html");
  for (const char* const page : {"page.html", "a/report.html"})
    check_contains(read_bytes(folder / page), {"final validation"});
  check_contains(read_bytes(folder / "a/report.html"), {"2 random batches", "all 29 blocks"});
}

TEST_CASE("xgrad: a loss before the first step, of the weights that it begins with", "[losses]") {
  const TinyFolder folder;
  const Result result = run_well(folder, tiny_train("--out run --dropout 0.2"));
  // By the plain loop: the weights of the seed, and the estimate's own batches.
  xgrad::manual_seed(1337);
  const auto text = lm::decode_utf8(tiny_text(), "text");
  const auto characters = lm::Characters::of(text);
  const auto ids = lm::split(characters.encode(text));
  const xgrad::lm::GPT model = plain_model(characters.size());
  xgrad::Generator generator(1337);
  double expected = 0;
  for (int i = 0; i < 2; ++i) {
    const auto [x, y] = lm::random_batch(ids.validation, 8, 4, generator);
    expected += model.loss(x, y).item() / 2;
  }
  CHECK(number_after(result.err, "\nbefore the first step: validation loss ") ==
        Approx(expected).margin(1e-4));
  CHECK(result.err.find("before the first step: ") < result.err.find("\nstep 1/40"));
  const std::vector<Json> rows = metrics_of(folder / "run");
  CHECK(rows[0].at("val_loss_before").get<double>() == Approx(expected).epsilon(1e-6));
  CHECK_FALSE(rows[1].contains("val_loss_before"));
  // A resumed run has no evaluation before its first step.
  const Result more = run_well(folder, "train --resume run --max-iters 44");
  CHECK(more.err.find("before the first step") == std::string::npos);
}

TEST_CASE("xgrad: documents that do not see each other", "[losses][documents]") {
  const TinyFolder folder;
  const Arguments with_end = tiny_train({"--out", "run", "--document-end", ".\n"});
  const Result trained = run_well(folder, with_end);
  check_contains(trained.err, {"'.\\x0a' ends 54 documents to train on."});
  // The final loss is that of each document's part of a block alone, position by position.
  const auto saved = xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors");
  const lm::Characters characters = characters_in(saved);
  xgrad::lm::GPT model = plain_model(characters.size());
  xgrad::io::load_state(model, saved.model, "test");
  const lm::Ids ids = lm::split(characters.encode(lm::decode_utf8(tiny_text(), "text"))).validation;
  const std::string validation = characters.decode(ids);
  double total = 0;
  for (std::size_t block = 0; block < 29; ++block) {
    const auto [x, y] = lm::block_batch(ids, 8, block, 1);
    for (std::size_t begin = 0, end = 0; begin < 8; begin = end) {
      do
        ++end;
      while (end < 8 &&
             (8 * block + end < 2 || validation.substr(8 * block + end - 2, 2) != ".\n"));
      const double mean = model
                              .loss(x.narrow(1, static_cast<std::int64_t>(begin), end - begin),
                                    y.narrow(1, static_cast<std::int64_t>(begin), end - begin))
                              .item();
      total += mean * static_cast<double>(end - begin) / (29 * 8);
    }
  }
  const double loss = number_after(trained.out, "val_loss ");
  CHECK(loss == Approx(total).epsilon(1e-6));
  CHECK(loss != Approx(loss_over(folder / "run/checkpoint.safetensors", tiny_text(), 29, true))
                    .epsilon(1e-4));
  CHECK(number_after(run_well(folder, "eval run").out, "val_loss ") == loss);
  CHECK(number_after(run_well(folder, {"eval", "run", "--document-end", "\n"}).out, "val_loss ") !=
        loss);
  // Samples end with their document.
  CHECK_THAT(run_well(folder, "sample run --prompt 'g did n'").out, EndsWith(".\n\n"));
  // Resuming keeps it, by its flag or by its id.
  run_well(folder, overridden(with_end, "--out half --max-iters 20"));
  run_well(folder, "train --resume half --max-iters 40");
  CHECK(read_bytes(folder / "half/checkpoint.safetensors") ==
        read_bytes(folder / "run/checkpoint.safetensors"));
  check_refused(folder, {"train", "--resume", "run", "--document-end", "\n"}, 1,
                {"--document-end \n is given, but the run has .\n"});
  run_well(folder, overridden(with_end, "--out 'by id' --document-end id:0"));
  run_well(folder, overridden(with_end, {"--out", "by text", "--document-end", "\n"}));
  CHECK(xgrad::io::load_checkpoint(folder / "by id/checkpoint.safetensors")
            .model.at(0)
            .second.data<float>()[0] ==
        xgrad::io::load_checkpoint(folder / "by text/checkpoint.safetensors")
            .model.at(0)
            .second.data<float>()[0]);
  check_contains(
      run(folder, tiny_train({"--overfit-one-batch", "--document-end", "\n", "--max-iters", "400"}))
          .out,
      {"passed"});

  for (const auto& [end, fragment] : std::vector<std::pair<std::string, std::string>>{
           {"Q", "Q"},
           {"999", "--document-end 999: the vocabulary has"},
           {"id:999", "--document-end id:999: the vocabulary has"},
           {"id:", "--document-end id:: an id is a number, as in id:0"},
           {"id:3x", "--document-end id:3x: an id is a number"},
           {"nod", "no document ends with --document-end 'nod'"}})
    check_refused(folder, overridden(with_end, {"--out", "none", "--document-end", end}), 1,
                  {fragment});
  check_refused(folder, "eval run --document-end nod", 1,
                {"no document ends with --document-end 'nod'"});
  // Tokens depend on their neighbours: " not" is one here.
  check_refused(folder,
                overridden(with_end, {"--out", "none", "--tokens", "bpe", "--vocab-size", "300",
                                      "--document-end", "not.\n"}),
                1, {"is there 54 times, but only 0 times as tokens of its own"});
}

TEST_CASE("xgrad: a digit that ends documents, and no end", "[losses][documents]") {
  const TinyFolder folder;
  const auto documents = [&](const std::string& end, const Arguments& more = {}) {
    const Result result =
        ran(folder, overridden(tiny_train({"--dry-run", "--document-end", end}), more));
    const std::size_t at = result.out.find(" ends ");
    const bool says_id = result.out.find(" The id ") != std::string::npos;
    CHECK(says_id == (end.starts_with("id:") || end == "19" || end == "83"));
    return at == std::string::npos ? 0 : std::stoi(result.out.substr(at + 6));
  };
  // "1" is a character of the text, and not all of "19" is: that is the id of a letter.
  const lm::Characters characters = lm::Characters::of(lm::decode_utf8(tiny_text(), "text"));
  const std::string train = tiny_text().substr(0, tiny_text().size() * 9 / 10),
                    letter = characters.decode({19}), one = characters.decode({1});
  CHECK(documents("1") == std::ranges::count(train, '1'));
  CHECK(documents("id:1") == std::ranges::count(train, one[0]));
  CHECK(documents("19") == std::ranges::count(train, letter[0]));
  CHECK(documents("0,\n") == documents("0"));
  // A number is an id of tokens.
  const Arguments bpe = {"--tokens bpe --vocab-size 257"};
  CHECK(documents("83", bpe) == documents("id:83", bpe));
  CHECK(documents("") == 0);
  check_contains(run_well(folder, tiny_train("--dry-run --document-end 19")).out,
                 {"The id 19 ('" + letter + "') ends "});
  std::string help = run_well(folder, "train --help").out;
  std::ranges::replace(help, '\n', ' ');
  help.erase(
      std::unique(help.begin(), help.end(), [](char a, char b) { return a == b && a == ' '; }),
      help.end());
  check_contains(help, {"a text, or id:N (with byte pairs a number is always an id): positions"});
  // A sample ends with such a document, too.
  run_well(folder, tiny_train("--out 'by id' --document-end id:0"));
  run_well(folder, tiny_train({"--out", "by text", "--document-end", "\n"}));
  const Arguments sample = {"sample 'by text' --tokens 200"};
  const std::string sampled = run_well(folder, sample).out;
  CHECK(sampled.size() < 200);
  CHECK(run_well(folder, overridden("sample 'by id'", "--tokens 200")).out == sampled);
  // No end is no end, also in eval of a run that has one.
  run_well(folder, tiny_train({"--out", "run", "--document-end", "\n"}));
  run_well(folder, "export run");
  const std::string whole = run_well(folder, "eval run --data text --document-end ''").out;
  CHECK(whole == run_well(folder, "eval model.safetensors --data text").out);
  CHECK(whole != run_well(folder, "eval run --data text").out);
}

TEST_CASE("xgrad: the last validation is bounded and named", "[losses]") {
  const TinyFolder folder;
  const Result all = run_well(folder, tiny_train("--out run"));
  check_contains(all.out, {"ll 29 blocks"});
  CHECK(number_after(all.out, "val_loss ") ==
        number_after(run_well(folder, "eval --checkpoint run").out, "val_loss "));
  std::string text;
  while (text.size() < 21'500)
    text += tiny_text();
  write_bytes(folder / "large", text.substr(0, 21'500));
  const Result result =
      run_well(folder, tiny_train("--data large --block-size 1 --out 'large run'"));
  check_contains(result.err, {"\nvalidation over the first 2,048 of 2,149 blocks"});
  check_contains(result.out, {"first 2,048 of 2,149 blocks", "eval takes all"});
  const Json last = metrics_of(folder / "large run").back();
  CHECK(last.at("final_val_loss_over") == "the first 2,048 of 2,149 blocks");
  CHECK(last.at("final_val_loss").get<double>() == number_after(result.out, "val_loss "));
  CHECK(last.at("final_val_loss").get<double>() !=
        number_after(run_well(folder, "eval --checkpoint 'large run'").out, "val_loss "));
}

TEST_CASE("xgrad: eval scores all of a text, or the part that is asked for", "[losses]") {
  const TrainedFolder folder;
  const auto eval = [&](const Arguments& more) {
    const Arguments all = overridden({"eval --checkpoint " + folder.checkpoint}, more);
    const Result result = ran(folder, all);
    return result.out;
  };
  const std::string text = tiny_text();
  const std::string file = folder / folder.checkpoint;
  // By default the text of the training: its validation split.
  const std::string usual = eval({});
  check_contains(usual, {"val_loss ", "all 29 blocks", "the validation split of"});
  CHECK(eval("--split val") == usual);
  const std::string train = eval("--split train");
  check_contains(train, {"train_loss ", "all 263 blocks", "the training split of"});
  CHECK(number_after(train, "loss ") == Approx(loss_over(file, text, 263)).epsilon(1e-6));
  // A named file: all of it.
  const std::string all = eval("--data text");
  check_contains(all, {"loss ", "all 292 blocks of text"});
  CHECK(all.find("val_loss") == std::string::npos);
  CHECK(number_after(all, "loss ") == Approx(loss_over(file, text, 292)).epsilon(1e-6));
  CHECK(eval("--split all").substr(0, 20) == all.substr(0, 20));
  CHECK(eval("--data text --split val").substr(0, 20) == usual.substr(0, 20));
  // The scored part must be long enough, not the whole text.
  write_bytes(folder / "nine", "the cat\nt");
  check_contains(eval("--data nine"), {"loss ", "the only block of nine"});
  check_refused(folder,
                {"eval", "--checkpoint", folder.checkpoint, "--data", "nine", "--split", "val"}, 1,
                {"nine: ", "too few for --block-size 8"});
  check_refused(folder, {"eval", "--checkpoint", folder.checkpoint, "--split", "half"}, 2,
                {"--split: 'half' is not one of train, val, all"});
}

TEST_CASE("xgrad: a loss that is not a number is no result", "[losses]") {
  const TrainedFolder folder;
  spoil(folder / folder.checkpoint);
  const Result result = run(folder, "eval --checkpoint " + folder.checkpoint);
  INFO(result.out << result.err);
  CHECK(result.code == 3);
  CHECK(result.out == "");
  check_contains(result.err,
                 {"run/checkpoint.safetensors: the loss is ", "anomaly in the forward"});
  for (const char* const name : {"sample", "explain"}) {
    INFO(name);
    CHECK(run(folder, {name, "--checkpoint", folder.checkpoint}).code == 1);
  }
  CHECK_FALSE(std::filesystem::exists(folder / "explain.html"));
  const Result begun = run(folder, tiny_train({"--init-from", folder.checkpoint, "--out", "new"}));
  CHECK(begun.code == 3);
  check_contains(begun.err, {"before the first step the validation loss is "});
  CHECK_FALSE(std::filesystem::exists(folder / "new"));
}

TEST_CASE("xgrad: a loss that is not a number ends the run, whose last good checkpoint is good",
          "[losses]") {
  const TinyFolder folder;
  // The weights grow 99 times in a step, and the loss is finite up to some moment.
  const auto wild = [&](const std::string& out, const std::string& more) {
    Result result =
        run(folder, tiny_train("--learning-rate 10 --min-lr 10 --weight-decay 10 --warmup-iters 0 "
                               "--grad-clip 0 --max-iters 1000 --out " +
                               out + more));
    INFO(result.out << result.err);
    CHECK(result.code == 3);
    return result.err;
  };
  for (const std::string interval : {"1", "2", "3", "5"}) {
    const std::string out = "run" + interval, path = out + "/checkpoint.safetensors";
    const std::string said =
        wild(out, interval == "5" ? " --eval-interval 5 --dropout 0.1"
                                  : " --eval-interval 1000 --save-interval " + interval);
    // The op is named, with its layer and its values.
    const std::size_t steps = metrics_of(folder / out).size();
    const auto checkpoint = xgrad::io::load_checkpoint(folder / path);
    check_contains(said, {"anomaly in the ", " of op ", ", in ", "  input 0: (",
                          fmt::format("The last good checkpoint, after {} steps, is {}",
                                      checkpoint.step, path)});
    if (interval == "5")
      CHECK_THAT(said, ContainsSubstring(fmt::format("step {}: ", steps)));
    CHECK((checkpoint.step % std::stoul(interval) == 0 && checkpoint.step > 0));
    CHECK(checkpoint.step <= steps);
    for (const auto& [name, tensor] : checkpoint.model)
      CHECK(xgrad::all(xgrad::isfinite(tensor)));
    CHECK(run_well(folder, "eval --checkpoint " + path).out.find("nan") == std::string::npos);
    CHECK_THAT(read_bytes(folder / out + "/report.html"), ContainsSubstring("of 1,000"));
  }
  // Broken before there is a checkpoint.
  check_contains(wild("none", " --eval-interval 1000"),
                 {"training stops before this step's update", "There is no checkpoint yet."});
  CHECK_FALSE(std::filesystem::exists(folder / "none/checkpoint.safetensors"));
  // A checkpoint with a value that is not finite is not resumed.
  run_well(folder, tiny_train("--out run"));
  xgrad::io::TensorFile file = xgrad::io::load_safetensors(folder / "run/checkpoint.safetensors");
  file.tensors["transformer.ln_f.weight"] = xgrad::full({16}, std::nanf(""));
  xgrad::io::save_safetensors(folder / "run/checkpoint.safetensors", file);
  check_refused(folder, "train --resume run --max-iters 50", 1,
                {"16 of the 16 values of transformer.ln_f.weight", "not finite"});
}

TEST_CASE("xgrad: a run in bfloat16 stays one", "[losses]") {
  const TinyFolder folder;
  const Result trained = run_well(folder, tiny_train({"--out", "run", "--dtype", "bfloat16"}));
  CHECK_THAT(trained.err,
             ContainsSubstring("bfloat16; matrix products by " + xgrad::bfloat16_name()));
  const double loss = number_after(trained.out, "val_loss ");
  CHECK(number_after(run_well(folder, {"eval", "run"}).out, "val_loss ") == loss);
  const Result exact = run_well(folder, {"eval", "run", "--dtype", "float32"});
  CHECK(number_after(exact.out, "val_loss ") != loss);
  CHECK(number_after(exact.out, "val_loss ") == Approx(loss).margin(0.01));
  check_refused(folder, {"train", "--resume", "run", "--dtype", "float32"}, 1,
                {"--dtype float32 is given, but the run has bfloat16"});
  run_well(folder, {"train", "--init-from", "run", "--data", "text", "--out", "adapted",
                    "--lora-rank", "2", "--dtype", "bfloat16", "--max-iters", "2"});
  for (const char* const out : {"run", "adapted"})
    CHECK(Json::parse(read_bytes(folder / (out + std::string("/config.json")))).at("dtype") ==
          "bfloat16");
  run_well(folder, tiny_train({"--out", "plain", "--max-iters", "1"}));
  CHECK_FALSE(Json::parse(read_bytes(folder / "plain/config.json")).contains("dtype"));
}
